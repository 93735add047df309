package strict

import "fmt"

// FieldError reports an invalid value in a configuration or control request.
type FieldError struct {
	Field   string // path of the field, such as "links[0].up.rate_kbps"; empty for the whole document
	Problem string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// Errorf returns a FieldError.
func Errorf(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
