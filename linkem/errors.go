package linkem

import "errors"

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

// exitWith makes err end the program with a code.
func exitWith(code int, err error) error { return &ExitError{code, err} }

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
