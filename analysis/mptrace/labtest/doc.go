// Package labtest makes a phone with two paths to a server, out of network
// namespaces, for tests and benchmarks of the trace engine.
//
// A [Lab] has a client with the interfaces wlan0 and rmnet0, a server with s1
// and s2, and between each pair a [Path]: a relay in user space that delays,
// limits, drops and alters packets as its owner says. Both ends are in this
// process, so a test knows byte by byte what the applications sent and got
// ([Pair]), and captures tell what passed the interfaces ([Lab.Capture]).
//
// Namespaces have no name and no process: whatever happens to this process,
// nothing remains.
package labtest
