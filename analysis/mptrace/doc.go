// Package mptrace turns packet captures into tables of TCP and Multipath TCP
// connections, their subflows and their events. [Analyse] is its entry point.
//
// Packets pass these packages in this order:
//
//	read     capfile            reads captures, one record a frame
//	decode   packet             decodes a frame down to TCP and its options
//	merge    internal/source    makes one sequence of the packets of all captures
//	select   internal/filter    selects connections
//	follow   internal/join/loopback  undoes transparent redirects
//	         internal/tcp       follows the flows
//	connect  internal/mptcp     builds connections from flows
//	         internal/payload   reads names and web objects from the payload
//	         internal/observe   writes other views of the data: sequence, xplot, mptcptrace
//	write    tables             holds the rows and writes them (internal/parquet)
//
// Package internal/pipeline runs merge, follow and connect concurrently.
// Outside the pipeline, internal/join/ends compares the captures of both ends
// of a path, internal/capture makes captures, internal/anonymise replaces the
// addresses in them, internal/network maps interfaces to networks, and labtest is a network laboratory for tests and benchmarks.
// internal/hist and internal/interval are containers that several stages use.
//
// A stage imports only the stages before it and package tables. Packages that
// other programs may import are in this directory; all others are in internal.
package mptrace
