// Package integration runs agent and proxy as programs in network namespaces: a phone
// with two interfaces, a router, a proxy and an origin.
//
// The tests run in private namespaces (mount, PID, network; also user if not root), so
// nothing that they create remains. If the machine does not permit this, the tests are
// skipped with the reason.
//
// Tests of single packages are next to their code.
package integration
