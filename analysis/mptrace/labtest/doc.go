// Package labtest builds a phone with two paths to a server from network
// namespaces, for tests and benchmarks of the trace engine.
//
// A [Lab] has a client with the interfaces wlan0 and rmnet0, a server with s1
// and s2, and a [Path] between each pair: a relay in user space that delays,
// limits, drops and alters packets on request. Both ends are in this process,
// so a test knows exactly which bytes the applications sent and received
// ([Pair]). Captures record the packets on the interfaces ([Lab.Capture]).
//
// The namespaces have neither names nor processes, so nothing remains after
// this process ends, however it ends.
package labtest
