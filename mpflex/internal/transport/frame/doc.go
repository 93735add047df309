// Package frame encodes and decodes the frames of a path: a header and a payload. See
// mpflex/session.md.
//
// Package session defines how to process the frames.
package frame
