// Command mptrace captures packets, and turns captures into tables of TCP and
// Multipath TCP connections.
package main

import (
	"errors"
	"fmt"
	"os"
)

// version is set when a release is built.
var version = "0.1.0"

// The exit codes.
const (
	exitPartial    = 1 // some of the input was not readable, or the disk is full
	exitBadInput   = 2
	exitPermission = 3
)

// exitError is an error with its exit code; err is nil when all was said.
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
