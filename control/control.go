// Package control lets clients send requests to a running program over a Unix
// stream socket that only its owner may use. The program reads one JSON object
// per line and answers each with one line, in order, on any number of
// connections:
//
//	{"op":"state"}
//	{"links":{…},"ok":true}
//	{"op":"sate"}
//	{"error":"op: unknown operation \"sate\"; there are apply, counters, state","ok":false}
//
// A program serves the socket with [Listen] and a [Handler]; for requests that
// consist of a name only, it uses [Operations]. [Dial] returns a client.
package control

import (
	"errors"
	"fmt"
	"strings"
)

const (
	longestPath    = 107      // in bytes, unix(7)
	longestRequest = 1 << 20  // in bytes of a line
	longestAnswer  = 64 << 20 // in bytes of a line
)

// CheckPath returns an error if the path cannot be that of a socket: it is
// empty or has more than 107 bytes (unix(7)).
func CheckPath(path string) error {
	switch {
	case path == "":
		return errors.New("the path is empty")
	case len(address(path)) > longestPath:
		return fmt.Errorf("the path has %d bytes, a Unix socket allows %d", len(address(path)), longestPath)
	}
	return nil
}

// address returns the path in the form of package net. There, "@name" would be
// an abstract socket, which has no owner and no mode.
func address(path string) string {
	if strings.HasPrefix(path, "@") {
		return "./" + path
	}
	return path
}
