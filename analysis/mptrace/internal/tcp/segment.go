package tcp

import (
	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/packet"
)

// The two directions of a flow. Up is sent by the end that opened it.
const (
	Up   = 0
	Down = 1
)

// Fresh says how much of a segment's payload was not seen before.
type Fresh uint8

// The values of [Fresh].
const (
	None Fresh = iota // no payload, or nothing of it is new
	All               // all of it
	Some              // the parts in Segment.Gaps
)

// Cause says why a segment with old payload, or with payload below the highest
// seen, came when it did.
type Cause uint8

// The causes of retransmissions. The rules are in cause.go.
const (
	NotRetransmitted Cause = iota
	RTO                    // the retransmission timer expired
	Fast                   // three duplicate acknowledgements, or as much selectively acknowledged
	Recovery               // a later loss of the same recovery
	TailProbe              // tail loss probe (RFC 8985 §7)
	Probe                  // keep-alive or zero-window probe
	Unneeded               // all of it had been acknowledged
	Unknown
	causes
)

// Causes is the number of causes, for tables indexed by them.
const Causes = int(causes)

var causeNames = [Causes]string{"", "rto", "fast", "recovery", "tail-probe", "probe", "unneeded", "unknown"}

func (c Cause) String() string { return causeNames[c] }

// Segment says what a packet is to its flow. Sequence numbers are unwrapped:
// extended to 64 bits so that they grow through a direction's life; their low
// 32 bits are those on the wire.
//
// A segment is complete: who takes it need not look at what changes in its
// flow, and may come behind the tracker.
type Segment struct {
	Packet *packet.Packet
	Flow   *Flow
	Dir    uint8 // Up or Down, of the flow
	First  bool  // the first packet of its flow
	// Duplicate marks a packet that the capture holds twice. It counts nowhere.
	Duplicate bool
	// Late marks a packet of a flow that has ended. It counts nowhere, and Flow
	// is none that was told before.
	Late bool
	// Ignored marks a RST that its addressee drops; Resumed the segment that
	// shows that the flow was not ended by an earlier one.
	Ignored, Resumed bool

	Fresh Fresh
	// All payload is fresh and below the highest sequence number seen. Hole: it
	// was lost before the capture saw it and came again. Reordered: it was
	// overtaken. One of them, never both.
	Hole, Reordered bool
	Cause           Cause // of the retransmission, when it is one

	Lo, Hi uint64          // the payload: Lo is the number of its first byte, with SYN too
	Gaps   []interval.Span // with Some: the new parts of [Lo, Hi)
	// Ack is the acknowledgement, among the numbers of the other direction; 0
	// when nothing is known of these.
	Ack uint64
	// Floor is the number below which all of the direction was seen, this
	// segment included. Segments with a DSS mapping have it.
	Floor uint64
	// Established: the TCP handshake of the flow has ended well.
	Established bool

	// Acked is how many bytes of the other direction this acknowledged for the
	// first time.
	Acked uint32
	// Window is the receive window in bytes, scaled when the scale is known.
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
	Start  uint64 // number of the direction's first payload byte, or of the lowest one seen without a SYN
	Bytes  uint32 // that were seen before, or that filled the hole
	Hole   bool
	Cause  Cause
	// Since the first time, since the last time that these bytes were seen, and
	// since the segment before this one in the direction; −1 when not known.
	SinceFirstNS, SinceLastNS, SinceSegmentNS int64
	Spurious                                  bool // a DSACK said so, or it was unneeded
}
