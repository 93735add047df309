// Package owner finds which local program made a connection: its uid by a
// sock_diag request, its process by /proc. Both are done beside the traffic.
//
// What follows from the owner is decided by policy.
package owner
