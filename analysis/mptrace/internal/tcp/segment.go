package tcp

import (
	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/packet"
)

// Directions of a flow. The end that opened the flow sends Up.
const (
	Up   = 0
	Down = 1
)

// Fresh describes which part of a segment's payload is new.
type Fresh uint8

// Values of [Fresh].
const (
	None Fresh = iota // no payload, or none of it is new
	All               // all of it
	Some              // the parts in Segment.Gaps
)

// Cause is the reason why a segment has old payload, or payload below the
// highest number seen.
type Cause uint8

// Causes of retransmissions. cause.go has the rules.
const (
	NotRetransmitted Cause = iota
	RTO                    // the retransmission timer expired
	Fast                   // three duplicate acknowledgements, or an equivalent amount of SACK
	Recovery               // a further loss of the same recovery
	TailProbe              // tail loss probe (RFC 8985 §7)
	Probe                  // keep-alive or zero-window probe
	Unneeded               // all of it had been acknowledged
	Unknown
	causes
)

// Causes is the number of causes, for arrays indexed by cause.
const Causes = int(causes)

var causeNames = [Causes]string{"", "rto", "fast", "recovery", "tail-probe", "probe", "unneeded", "unknown"}

func (c Cause) String() string { return causeNames[c] }

// Segment describes a packet in its flow. Sequence numbers are unwrapped: they
// are extended to 64 bits so that they increase during a direction's life.
// Their low 32 bits are those on the wire.
//
// A segment is self-contained: its consumer needs none of the flow's changing
// fields, and can run behind the tracker.
type Segment struct {
	Packet *packet.Packet
	Flow   *Flow
	Dir    uint8 // Up or Down, by the flow
	First  bool  // the first packet of its flow
	// Duplicate marks a packet that the capture contains twice. It must not be
	// counted.
	Duplicate bool
	// Late marks a packet of a flow that has ended. It must not be counted, and
	// Flow is nil.
	Late bool
	// Ignored marks an RST that its receiver drops. Resumed marks the segment
	// that shows that an earlier RST did not end the flow.
	Ignored, Resumed bool

	Fresh Fresh
	// Both concern payload that is entirely new and below the highest sequence
	// number seen. Hole: it was lost before the capture and sent again.
	// Reordered: later segments overtook it. At most one of them is set.
	Hole, Reordered bool
	Cause           Cause // of a retransmission

	Lo, Hi uint64          // the payload: Lo is the number of its first byte, also with SYN
	Gaps   []interval.Span // with Some: the new parts of [Lo, Hi)
	// Ack is the acknowledgement in the other direction's numbers; 0 if these
	// are unknown.
	Ack uint64
	// Floor is the number below which all data of the direction was seen,
	// including this segment. It is set for segments with a DSS mapping.
	Floor uint64
	// Established: the TCP handshake of the flow is complete.
	Established bool

	// Acked is the number of newly acknowledged bytes of the other direction.
	Acked uint32
	// Window is the receive window in bytes, scaled if the scale is known.
	Window uint32
}

// Endpoint is one end of a flow.
type Endpoint struct {
	Addr packet.Addr
	Port uint16
}

// Retransmission is one segment that was sent again, or that filled a hole.
type Retransmission struct {
	Flow   *Flow
	Dir    uint8
	TimeNS int64
	Seq    uint64 // number of its first byte
	Start  uint64 // number of the first payload byte; without a SYN, of the lowest byte seen
	Bytes  uint32 // bytes seen before, or bytes that filled the hole
	Hole   bool
	Cause  Cause
	// Time since these bytes were first seen, since they were last seen, and
	// since the previous segment of the direction; −1: unknown.
	SinceFirstNS, SinceLastNS, SinceSegmentNS int64
	Spurious                                  bool // reported by a DSACK, or unneeded
}
