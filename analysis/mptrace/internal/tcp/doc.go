// Package tcp follows TCP flows: what each direction sent, what of it was new,
// what was sent again and why, and how long the answers took.
//
// A [Tracker] is given packets one by one and says in a [Segment] what each of
// them is to its [Flow]. It knows nothing of Multipath TCP; package mptcp
// builds connections from the segments.
package tcp
