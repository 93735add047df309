// Package stream puts the captured pieces of one direction of a connection
// back in order. Each byte keeps the time at which it came and the subflow
// that brought it.
package stream
