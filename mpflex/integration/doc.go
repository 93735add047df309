// Package integration runs agent and proxy as programs between network
// namespaces: a phone with two interfaces, a router, a proxy and an origin.
//
// The tests run again inside private namespaces (mount, PID, network; user,
// when not root), so nothing that they make outlives them. Where the machine
// does not permit that they are skipped, with the reason.
//
// Tests of single packages are beside their code.
package integration
