// Package flood generates hostile traces: very many flows that need memory but
// carry little information. Traces are written as a stream, so no file is
// needed.
package flood
