package tables

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteSchemaJSON writes the documentation of all tables as JSON: {"schema": 2,
// "tables": {NAME: {"doc", "columns": [{"name", "type", "unit", "nullable",
// "doc"}]}}}, with one line per column.
func WriteSchemaJSON(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"schema\": %d, \"tables\": {", Schema)
	for i := range catalog {
		t := &catalog[i]
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n%s: {\"doc\": %s, \"columns\": [", quote(t.Name), quote(t.Doc))
		for k, c := range t.Columns {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "\n  {\"name\": %s, \"type\": %s, \"unit\": %s, \"nullable\": %t, \"doc\": %s}",
				quote(c.Name), quote(c.Type), quote(c.Unit), c.Nullable, quote(c.Doc))
		}
		b.WriteString("]}")
	}
	b.WriteString("\n}}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// quote returns s as JSON without the escapes that only HTML needs.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return strings.TrimSpace(b.String())
}

// WriteSchemaMarkdown writes the documentation of all tables as Markdown.
func WriteSchemaMarkdown(w io.Writer) error {
	var b bytes.Buffer
	for i := range catalog {
		t := &catalog[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "### %s\n\n%s\n\n| column | type | unit | meaning |\n| --- | --- | --- | --- |\n", t.Name, wrapped(sentence(t.Doc)))
		for _, c := range t.Columns {
			kind := c.Type
			if c.Nullable {
				kind += ", null"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, kind, c.Unit, strings.ReplaceAll(c.Doc, "|", "\\|"))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// wrapped returns s in lines of at most 120 columns.
func wrapped(s string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(s) {
		length := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+length > 120:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String()
}
