package linkem

import (
	"errors"
	"fmt"
)

// Exit codes of the program.
const (
	ExitOK               = 0
	ExitFailed           = 1 // anything else, among it a probe without an answer
	ExitConfig           = 2 // bad configuration file or command line
	ExitMissingInterface = 3 // an interface of the configuration does not exist
)

// ExitError is an error with the exit code that it ends the program with.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

func (e *ExitError) Unwrap() error { return e.Err }

// exitCode gives the code for err: that of the innermost ExitError, else ExitFailed.
func exitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	var exit *ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return ExitFailed
}

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

func fieldErrorf(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
