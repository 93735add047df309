// Package ifaces tells which network interfaces a connection can be bound to,
// now and as that changes.
//
// The kernel's notices (rtnetlink, RFC 3549) say only that something changed;
// what is there is then read anew, at a bounded rate. So a notice that gets lost
// or an interface that flaps costs nothing but the next reading. Nothing asks
// for more than an application on Android may do, but for the notices: where
// their socket cannot be bound (Android 11 and later, for applications) it polls.
//
// Which of the interfaces are used, and for what, is decided by callers.
package ifaces
