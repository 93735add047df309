// Package control is how a program that runs is asked for something: over a
// Unix stream socket that only its owner may use. It takes one JSON object a
// line and answers each with one line, in order, on any number of connections:
//
//	{"op":"state"}
//	{"links":{…},"ok":true}
//	{"op":"sate"}
//	{"error":"op: unknown operation \"sate\"; there are apply, counters, state","ok":false}
//
// A program serves it with [Listen], a [Handler] and, where requests are
// nothing but the name of what is asked for, [Operations]. [Dial] asks.
package control

import (
	"errors"
	"fmt"
	"strings"
)

const (
	longestPath    = 107      // bytes, unix(7)
	longestRequest = 1 << 20  // bytes of a line
	longestAnswer  = 64 << 20 // bytes of a line
)

// CheckPath refuses what cannot be the path of a socket: nothing, and more
// than 107 bytes (unix(7)).
func CheckPath(path string) error {
	switch {
	case path == "":
		return errors.New("the path is empty")
	case len(address(path)) > longestPath:
		return fmt.Errorf("the path has %d bytes, a Unix socket allows %d", len(address(path)), longestPath)
	}
	return nil
}

// address is the path as package net takes it: "@name" would be an abstract
// socket, which has no owner and no mode.
func address(path string) string {
	if strings.HasPrefix(path, "@") {
		return "./" + path
	}
	return path
}
