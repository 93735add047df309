// Package rig creates the networks of the benchmark: a phone with two interfaces, a proxy and an origin, with emulated
// links between them.
//
// Everything is private to one process and its children, and vanishes with that process, however it ends. Enter runs
// the program again as the first process of separate namespaces (network, mount, PID; also user, unless run as root).
// That process is the phone; the other nodes are unnamed network namespaces.
//
// Packages method and role run the programs on the nodes.
package rig
