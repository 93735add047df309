// Package accept runs a listener: one goroutine for each connection, a bounded number
// of them, and a close that waits for all. What a connection carries is the caller's
// concern.
package accept
