package tables

import (
	"bytes"
	"encoding/json"
)

// Maybe is a value that may be missing: null in JSON and Parquet.
type Maybe[T any] struct {
	Value T
	Known bool
}

// Just returns a value that is known.
func Just[T any](v T) Maybe[T] { return Maybe[T]{v, true} }

// MarshalJSON writes the value or null.
func (m Maybe[T]) MarshalJSON() ([]byte, error) {
	if !m.Known {
		return []byte("null"), nil
	}
	return json.Marshal(m.Value)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (m *Maybe[T]) UnmarshalJSON(b []byte) error {
	*m = Maybe[T]{}
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	m.Known = true
	return json.Unmarshal(b, &m.Value)
}
