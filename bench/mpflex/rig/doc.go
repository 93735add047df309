// Package rig makes the networks that the benchmark runs in: a phone with two interfaces, a proxy and an origin, with
// emulated links between them.
//
// All of it is private to one process and its children, and vanishes with it whatever happens: Enter runs the program
// again in namespaces of its own (network, mount, PID; user, when not root), whose first process it is. That process is
// the phone; the other nodes are network namespaces without a name.
//
// What runs on the nodes belongs to method and role.
package rig
