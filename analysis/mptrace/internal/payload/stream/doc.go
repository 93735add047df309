// Package stream puts the captured pieces of one direction of a connection in
// order. Each byte keeps its arrival time and its subflow.
package stream
