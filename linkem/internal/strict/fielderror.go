package strict

import "fmt"

// FieldError is a value that a configuration or a control request may not have.
type FieldError struct {
	Field   string // path of the field, such as "links[0].up.rate_kbps"; empty for the whole
	Problem string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// Errorf makes a FieldError.
func Errorf(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
