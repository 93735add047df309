// Package wire is the format of what agent and proxy say to each other before
// anything else on a connection: one hello and one status on a carrying
// connection, one attach and its answer on a path. See mpflex/spec.md.
//
// What passes on a path after that is described by frame and session.md.
package wire
