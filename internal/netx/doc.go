// Package netx is a thin layer over the kernel's sockets: it opens, binds and
// listens with exactly the requested options, and reads the state of MPTCP.
//
// The dialer and the listeners of package net silently fall back to plain TCP
// if MPTCP does not work. This package either opens the requested kind of
// socket or returns an error with the reason.
//
// Sessions, relays and all other code with goroutines belong to the callers.
package netx
