// Package tcp follows TCP flows: the data that each direction sent,
// retransmissions and their causes, and round trips.
//
// A [Tracker] takes packets one by one and describes in a [Segment] what each
// one means for its [Flow]. It does not handle Multipath TCP; package mptcp
// builds connections from the segments.
package tcp
