// Package mptrace turns packet captures into tables of TCP and Multipath TCP
// connections, their subflows and their events. [Analyse] is its entry point.
//
// Packets pass these packages in this order:
//
//	read     capfile            reads captures, one record a frame
//	merge    internal/source    makes one sequence of the records of all captures
//	decode   packet             decodes a frame down to TCP and its options
//	select   internal/join/loopback  undoes transparent redirects
//	         internal/filter    selects connections
//	follow   internal/tcp       follows the flows
//	connect  internal/mptcp     builds connections from flows
//	         internal/payload   reads names and web objects from the payload
//	         internal/observe   writes other views of the data: sequence, xplot, mptcptrace
//	write    tables             holds the rows and writes them (internal/parquet)
//
// Most packets of a transfer take a fast path: tcp.Tracker.Fast and
// mptcp.Engine.Fast read the few fields that they need from the frame and change
// the same state as Add, which processes every other packet. Tests compare the
// tables of both paths.
//
// Package internal/pipeline runs merge, follow and connect concurrently, on
// different blocks of records. With one thread, each packet passes both at once.
// Outside the pipeline, internal/join/ends compares the captures of both ends
// of a path, internal/capture makes captures, internal/anonymise replaces the
// addresses in them, internal/network maps interfaces to networks, and labtest is a network laboratory for tests and benchmarks.
// internal/hist and internal/interval are containers that several stages use.
//
// A stage imports only the stages before it and package tables. Packages that
// other programs may import are in this directory; all others are in internal.
package mptrace
