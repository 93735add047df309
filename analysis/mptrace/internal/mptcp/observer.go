package mptcp

import (
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/tables"
)

// Observer receives the events of the engine as they occur. Data is counted by
// offset: 0 is the first byte of the direction's data (DSN − IDSN − 1; for
// plain TCP and after a fallback, the relative sequence number). See Conn for
// connections without MPTCP.
type Observer interface {
	// Subflow reports a new subflow. The first one also starts its connection.
	Subflow(s *Sub)
	// Data reports payload with its place: [lo, hi) on subflow s. original is
	// the subflow that carried its first byte before, s itself for a TCP
	// retransmission, or nil for new data. Partly old payload is reported in
	// several calls.
	Data(s *Sub, dir int, timeNS int64, lo, hi uint64, original *Sub)
	// Mapping reports a DSS mapping as announced, without DATA_FIN.
	Mapping(s *Sub, dir int, timeNS int64, lo, hi uint64)
	// Ack reports that data of direction dir below offset is acknowledged (by
	// DATA_ACK; for plain TCP by ACK), and the window in bytes beyond it. It
	// reports every acknowledgement, also those that repeat earlier ones.
	Ack(s *Sub, dir int, timeNS int64, offset uint64, window uint32)
	// Event reports a row of the table events.
	Event(s *Sub, row *tables.Event)
	// Segment reports every segment, after all other calls for it.
	Segment(s *Sub, dir int, seg *tcp.Segment)
	// End reports the end of a connection with its final row.
	End(c *Conn, row *tables.Connection)
}

// Interest is the set of calls that an observer wants in addition to data, new
// acknowledgements, and the start and end of subflows and connections.
type Interest uint8

// Calls that are optional.
const (
	Mappings Interest = 1 << iota // Mapping
	Repeats                       // Ack with the same number and window as the previous one of the direction
	Segments                      // Segment
	Events                        // Event

	everything = Mappings | Repeats | Segments | Events
)

// Choosy is an observer that declares its interest; any other observer receives
// all calls. In a list of observers, each one receives all calls that at least
// one wants.
type Choosy interface {
	Observer
	Interest() Interest
}

func interestOf(o Observer) Interest {
	switch o := o.(type) {
	case nil:
		return 0
	case Choosy:
		return o.Interest()
	}
	return everything
}

// Payload receives the captured payload of a connection in the order of
// arrival. Pieces can overlap earlier ones, and holes can remain forever.
type Payload interface {
	// Data passes bytes from offset on (see [Observer]). They are valid during
	// the call.
	Data(dir int, offset uint64, b []byte, timeNS int64, subflow int32)
	// Skip reports payload that was sent but not captured.
	Skip(dir int, offset, size uint64, timeNS int64, subflow int32)
	// End reports the end of the payload, before the connection's row is
	// written.
	End()
}

// Observers is a list of observers; it passes each call to all of them in
// order.
type Observers []Observer

// Interest returns the union of the interests.
func (o Observers) Interest() Interest {
	all := Interest(0)
	for _, each := range o {
		all |= interestOf(each)
	}
	return all
}

// Subflow implements [Observer].
func (o Observers) Subflow(s *Sub) {
	for _, each := range o {
		each.Subflow(s)
	}
}

// Data implements [Observer].
func (o Observers) Data(s *Sub, dir int, timeNS int64, lo, hi uint64, original *Sub) {
	for _, each := range o {
		each.Data(s, dir, timeNS, lo, hi, original)
	}
}

// Mapping implements [Observer].
func (o Observers) Mapping(s *Sub, dir int, timeNS int64, lo, hi uint64) {
	for _, each := range o {
		each.Mapping(s, dir, timeNS, lo, hi)
	}
}

// Ack implements [Observer].
func (o Observers) Ack(s *Sub, dir int, timeNS int64, offset uint64, window uint32) {
	for _, each := range o {
		each.Ack(s, dir, timeNS, offset, window)
	}
}

// Event implements [Observer].
func (o Observers) Event(s *Sub, row *tables.Event) {
	for _, each := range o {
		each.Event(s, row)
	}
}

// Segment implements [Observer].
func (o Observers) Segment(s *Sub, dir int, seg *tcp.Segment) {
	for _, each := range o {
		each.Segment(s, dir, seg)
	}
}

// End implements [Observer].
func (o Observers) End(c *Conn, row *tables.Connection) {
	for _, each := range o {
		each.End(c, row)
	}
}
