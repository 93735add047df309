// Package accept runs a listener: a goroutine for each connection, a bound on their
// number, and a shutdown that waits for all. The content of a connection belongs to the
// caller.
package accept
