// Package ifaces reports the network interfaces that a connection can be bound
// to, and their changes.
//
// The kernel's notifications (rtnetlink, RFC 3549) only trigger a complete
// read, at a bounded rate. So a lost notification or a flapping interface costs
// at most one more read. The package only needs the permissions of an Android
// application. The exception is the notification socket: where it cannot be
// bound (Android 11 and later, for applications), the package polls.
//
// The callers decide which interfaces are used, and for what.
package ifaces
