// Package owner finds the local program of a connection: its uid by a sock_diag
// request, its process in /proc. Both run in parallel to the traffic.
//
// Package policy decides how the owner is used.
package owner
