// Package observe holds the common parts of connection observers: a state per
// connection, and the data that waits for an acknowledgement. Each output
// format is a package below it.
package observe
