// Package mptcp builds TCP and Multipath TCP connections (RFC 8684, RFC 6824)
// and their rows from the segments of package tcp.
//
// An [Engine] processes the segments of a [tcp.Tracker]. Each flow is a subflow
// ([Sub]) of a connection ([Conn]). The code that every data segment needs is
// in multipath.go, mapping.go, data.go and ack.go. Handshakes, signals,
// connection ends and rows are rare and have separate files.
package mptcp
