// Package netx is the thin edge to the kernel's sockets: it opens, binds and
// listens with exactly the options asked for, and reads MPTCP's state back.
//
// The dialer and the listeners of package net fall back to plain TCP silently
// when MPTCP does not work; here, what was asked for is what is opened, or an
// error says why not.
//
// Sessions, relays and anything else with a goroutine of its own belong to the
// callers.
package netx
