package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mplab/docs/schema"
)

// DefaultMost is the default maximum length of a line in bytes.
const DefaultMost = 64 << 10

// Error is an invalid line with its problem.
type Error struct {
	Line    int // starts at 1
	Problem string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// Checker checks batches. It is safe for concurrent use.
type Checker struct {
	most  int
	kinds map[string]*jsonschema.Schema
	names string // names of the kinds, for an error
}

// compiled returns the schema of each kind.
var compiled = sync.OnceValue(func() map[string]*jsonschema.Schema {
	const location = "phone-log.schema.json"
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.PhoneLog))
	if err != nil {
		panic(err) // the file is part of the program
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(location, document); err != nil {
		panic(err)
	}
	kinds := make(map[string]*jsonschema.Schema)
	for kind := range document.(map[string]any)["$defs"].(map[string]any) {
		kinds[kind] = compiler.MustCompile(location + "#/$defs/" + kind)
	}
	return kinds
})

// New returns a checker for lines of at most `most` bytes; 0: DefaultMost.
func New(most int) *Checker {
	if most == 0 {
		most = DefaultMost
	}
	c := &Checker{most: most, kinds: compiled()}
	var names []string
	for kind := range c.kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	c.names = strings.Join(names, ", ")
	return c
}

// Check checks all lines of a batch. A batch has at least one line, and each
// line has a line end.
func (c *Checker) Check(batch []byte) *Error {
	if len(batch) == 0 {
		return &Error{1, "the batch is empty"}
	}
	for n := 1; len(batch) > 0; n++ {
		line, rest, whole := bytes.Cut(batch, []byte("\n"))
		if !whole {
			return &Error{n, "it has no end"}
		}
		if err := c.line(line); err != nil {
			return &Error{n, err.Error()}
		}
		batch = rest
	}
	return nil
}

func (c *Checker) line(line []byte) error {
	switch {
	case len(line) > c.most:
		return fmt.Errorf("it has %d bytes; at most %d are allowed", len(line), c.most)
	case !utf8.Valid(line):
		return errors.New("it is not UTF-8")
	}
	object, err := parse(line)
	if err != nil {
		return err
	}
	kind, _ := object["kind"].(string)
	valid, known := c.kinds[kind]
	if !known {
		return fmt.Errorf("kind: %.40q is not known; known are %s", kind, c.names)
	}
	var bad *jsonschema.ValidationError
	if err := valid.Validate(object); errors.As(err, &bad) {
		return errors.New(kind + ": " + reason(bad))
	}
	return err
}

// parse reads an object. It refuses a duplicate key at the first level, because
// readers differ in which value they use.
func parse(line []byte) (map[string]any, error) {
	if !json.Valid(line) {
		return nil, errors.New("it is not JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	object := make(map[string]any)
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("%.40q is there twice", key)
		}
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, errors.New("a number is too large")
		}
		object[key] = value
	}
	return object, nil
}

// reason returns the innermost cause, in one line.
func reason(bad *jsonschema.ValidationError) string {
	for len(bad.Causes) > 0 {
		bad = bad.Causes[0]
	}
	at := strings.Join(bad.InstanceLocation, ".")
	if at != "" {
		at += ": "
	}
	text := at + strings.Join(strings.Fields(fmt.Sprint(bad.ErrorKind.LocalizedString(printer))), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}
