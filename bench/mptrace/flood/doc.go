// Package flood makes hostile traces: very many flows that take memory and
// have little to say. They are written as a stream, so that none needs a file.
package flood
