// Package mptrace turns packet captures into tables of TCP and Multipath TCP
// connections and their subflows.
//
// Data flows one way: package capfile reads and merges captures, package
// packet decodes a frame without allocating, an [Engine] follows TCP (flow.go)
// and MPTCP (conn.go, mapping.go), and package tables holds and writes the
// rows. Package capture makes captures.
package mptrace
