// Package frame is the format of what passes on a path of a session: frames of
// a header and a payload, one after the other. See mpflex/spec.md.
//
// What the frames mean is decided by session.
package frame
