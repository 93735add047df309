// Command mptrace captures packets and turns captures into tables of TCP and
// Multipath TCP connections.
package main

import (
	"errors"
	"fmt"
	"os"
)

// version is set by the release build.
var version = "unknown"

// Exit codes.
const (
	exitPartial    = 1 // a part of the input could not be read, or an output could not be written
	exitBadInput   = 2
	exitPermission = 3
)

// exitError is an error with its exit code. If err is nil, nothing more is
// printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return fmt.Sprint(e.err) }
func (e *exitError) Unwrap() error { return e.err }

func main() {
	keepPace()
	err := newCommand().Execute()
	if err == nil {
		return
	}
	code := exitBadInput
	var coded *exitError
	if errors.As(err, &coded) {
		code, err = coded.code, coded.err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mptrace:", err)
	}
	os.Exit(code)
}
