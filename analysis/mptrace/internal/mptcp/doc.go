// Package mptcp builds TCP and Multipath TCP connections (RFC 8684, RFC 6824)
// from the segments of package tcp, and their rows.
//
// An [Engine] takes what a [tcp.Tracker] says of each packet. A flow is a
// subflow ([Sub]) of a connection ([Conn]). What every data segment needs is in
// multipath.go, mapping.go, data.go and ack.go; handshakes, signals, ends and
// rows are rare and have files of their own.
package mptcp
