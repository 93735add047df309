// Package mptrace turns packet captures into tables of TCP and Multipath TCP
// connections, their subflows, and what happened on them.
//
// Data flows one way. Package capfile reads captures and package packet
// decodes frames; package source makes one sequence of segments of them,
// merged by time. Package tcp follows the flows, package mptcp the
// connections that they belong to, and package tables writes the rows. Package
// relay lets these stages work side by side.
// Packages sequence, xplot and mptcptrace look on and write their own forms;
// package payload reads names and web objects where payload was captured, with
// package proxied for what agents and proxies say. Package network names the
// networks of interfaces. Package ends compares the captures of both ends.
// Package capture makes captures.
//
// [Analyse] is all of it.
package mptrace
