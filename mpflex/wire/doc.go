// Package wire encodes and decodes the first messages of a connection between agent and
// proxy: one hello and one status on a carrying connection, one attach and its answer
// on a path. See mpflex/spec.md. It also has the messages at the start of a stream and
// in a datagram frame.
//
// Frames belong to package frame; see mpflex/session.md.
package wire
