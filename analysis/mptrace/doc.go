// Package mptrace turns packet captures into tables of TCP and Multipath TCP
// connections, their subflows, and what happened on them. [Analyse] is all of
// it.
//
// Packets pass these packages in this order:
//
//	read     capfile            reads captures, one record a frame
//	decode   packet             decodes a frame down to TCP and its options
//	merge    internal/source    makes one sequence of the packets of all captures
//	follow   internal/join/loopback  undoes transparent redirects
//	         internal/tcp       follows the flows
//	connect  internal/mptcp     builds connections from flows
//	         internal/payload   reads names and web objects from the payload
//	         internal/observe   writes other forms of the same: sequence, xplot, mptcptrace
//	write    tables             holds the rows and writes them (internal/parquet)
//
// Package internal/pipeline lets merge, follow and connect work side by side.
// Beside the pipeline, internal/join/ends compares the captures of both ends of
// a path, internal/capture makes captures, internal/network names the networks
// of interfaces, and labtest is a laboratory for tests and benchmarks.
// internal/hist and internal/interval are containers that several stages use.
//
// A stage knows only the stages before it, and tables. What other programs may
// import stands beside this file; everything else is internal.
package mptrace
