package exit

import "errors"

// Exit codes of the program.
const (
	OK               = 0
	Failed           = 1 // any other error, including a probe without an answer
	Config           = 2 // bad configuration file or command line
	MissingInterface = 3 // an interface in the configuration does not exist
)

// Error is an error with the exit code of the program.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// With returns an error that ends the program with a code.
func With(code int, err error) error { return &Error{code, err} }

// Code returns the exit code for err: that of the outermost Error, otherwise Failed.
func Code(err error) int {
	if err == nil {
		return OK
	}
	var exit *Error
	if errors.As(err, &exit) {
		return exit.Code
	}
	return Failed
}
