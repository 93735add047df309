package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Fields maps each allowed key of a JSON object to the function that reads its value.
type Fields map[string]func(path string, raw json.RawMessage) error

// CheckSyntax returns an error with line and column if raw is not one JSON value.
func CheckSyntax(raw []byte) error {
	var value json.RawMessage
	err := json.Unmarshal(raw, &value)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := raw[:min(int(syntax.Offset), len(raw))]
		line := bytes.Count(before, []byte("\n")) + 1
		column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
		return fmt.Errorf("line %d, column %d: not valid JSON: %s", line, max(column, 1), syntax.Error())
	}
	if err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	return nil
}

// Object reads a JSON object strictly. An unknown, duplicate or missing required key is an error.
func Object(path string, raw json.RawMessage, allowed Fields, required ...string) error {
	seen := map[string]bool{}
	err := Members(path, raw, func(key string, value json.RawMessage) error {
		read, known := allowed[key]
		switch {
		case !known:
			return Errorf(Join(path, key), "unknown key; allowed: %s", strings.Join(slices.Sorted(maps.Keys(allowed)), ", "))
		case seen[key]:
			return Errorf(Join(path, key), "given twice; remove one")
		}
		seen[key] = true
		return read(Join(path, key), value)
	})
	if err != nil {
		return err
	}
	for _, key := range required {
		if !seen[key] {
			return Errorf(Join(path, key), "missing")
		}
	}
	return nil
}

// Members calls take for each member of a JSON object in order, including duplicate keys.
func Members(path string, raw json.RawMessage, take func(key string, value json.RawMessage) error) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	token, err := decoder.Token()
	if err != nil || token != json.Delim('{') {
		return Errorf(path, "must be an object {…}, found %s", Excerpt(raw))
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return Errorf(path, "not valid JSON: %v", err)
		}
		key, _ := token.(string)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return Errorf(Join(path, key), "not valid JSON: %v", err)
		}
		if err := take(key, value); err != nil {
			return err
		}
	}
	return nil
}

// Array calls read for each element of a JSON array.
func Array(path string, raw json.RawMessage, read func(path string, raw json.RawMessage) error) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil || elements == nil {
		return Errorf(path, "must be a list […], found %s", Excerpt(raw))
	}
	for i, element := range elements {
		if err := read(fmt.Sprintf("%s[%d]", path, i), element); err != nil {
			return err
		}
	}
	return nil
}

// Number returns a reader of a finite number from low to high.
func Number(target *float64, low, high float64) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		value, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			return Errorf(path, "must be a number, found %s", Excerpt(raw))
		}
		if value < low || value > high {
			return Errorf(path, "must be from %s to %s, found %s", Plain(low), Plain(high), Excerpt(raw))
		}
		*target = value
		return nil
	}
}

// Integer returns a reader of a whole number from low to high.
func Integer(target *int, low, high int) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		value, err := strconv.Atoi(string(raw))
		if err != nil {
			return Errorf(path, "must be a whole number, found %s", Excerpt(raw))
		}
		if value < low || value > high {
			return Errorf(path, "must be from %d to %d, found %d", low, high, value)
		}
		*target = value
		return nil
	}
}

// Seed returns a reader of a seed: a whole number from 0 to 2⁶⁴−1.
func Seed(target *uint64) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		value, err := strconv.ParseUint(string(raw), 10, 64)
		if err != nil {
			return Errorf(path, "must be a whole number from 0 to 2^64-1, found %s", Excerpt(raw))
		}
		*target = value
		return nil
	}
}

// String returns a reader of a non-empty string.
func String(target *string) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		var value *string
		if err := json.Unmarshal(raw, &value); err != nil || value == nil || *value == "" {
			return Errorf(path, "must be a string that is not empty, found %s", Excerpt(raw))
		}
		*target = *value
		return nil
	}
}

// Bool returns a reader of true or false.
func Bool(target *bool) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		value, err := strconv.ParseBool(string(raw))
		if err != nil || len(raw) < len("true") {
			return Errorf(path, "must be true or false, found %s", Excerpt(raw))
		}
		*target = value
		return nil
	}
}

// OneOf returns a reader of one of the given strings.
func OneOf(target *string, allowed []string) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		var value string
		if err := json.Unmarshal(raw, &value); err != nil || !slices.Contains(allowed, value) {
			return Errorf(path, "must be one of %s, found %s", strings.Join(allowed, ", "), Excerpt(raw))
		}
		*target = value
		return nil
	}
}

// Errorf returns an error for a value. path is empty for the whole document.
func Errorf(path, format string, args ...any) error {
	if path != "" {
		path += ": "
	}
	return errors.New(path + fmt.Sprintf(format, args...))
}

// Join returns the path of a key.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Plain returns a number without an exponent.
func Plain(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// Excerpt returns raw on one line, shortened for a message.
func Excerpt(raw []byte) string {
	const longest = 40
	text := strings.Join(strings.Fields(string(raw)), " ")
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}
