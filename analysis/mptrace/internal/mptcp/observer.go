package mptcp

import (
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/tables"
)

// Observer is told what the engine sees, as it sees it. Data is counted by
// offset: 0 is the first byte of the direction's data (DSN − IDSN − 1; for
// plain TCP, and after a fallback, relative sequence number); see Conn for
// connections without MPTCP.
type Observer interface {
	// Subflow tells of a new subflow, and so of a new connection with its first.
	Subflow(s *Sub)
	// Data tells of payload with its place: [lo, hi) on subflow s. Original is
	// the subflow that carried its first byte before, s itself for what TCP
	// sent again, nil for new data. Partly old payload comes in several calls.
	Data(s *Sub, dir int, timeNS int64, lo, hi uint64, original *Sub)
	// Mapping tells of a DSS mapping as announced, DATA_FIN left out.
	Mapping(s *Sub, dir int, timeNS int64, lo, hi uint64)
	// Ack tells that data of direction dir below offset is acknowledged (by
	// DATA_ACK; for plain TCP by ACK), and the window in bytes beyond it. Every
	// acknowledgement is told, also those that acknowledge nothing new.
	Ack(s *Sub, dir int, timeNS int64, offset uint64, window uint32)
	// Event tells of the rows of the table events.
	Event(s *Sub, row *tables.Event)
	// Segment tells of every segment, after all else about it was told.
	Segment(s *Sub, dir int, seg *tcp.Segment)
	// End tells that no more of a connection comes; its row is final.
	End(c *Conn, row *tables.Connection)
}

// Interest is what an observer wants to be told beside data, acknowledgements
// that tell something new, and the begin and end of things.
type Interest uint8

// What an observer may do without.
const (
	Mappings Interest = 1 << iota // Mapping
	Repeats                       // Ack for what repeats the number and the window told before in the direction
	Segments                      // Segment
	Events                        // Event

	everything = Mappings | Repeats | Segments | Events
)

// Choosy is an observer that says what it wants to be told; any other one is
// told everything. Among several, what one of them wants all are told.
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

// Payload takes the captured payload of a connection, in the order of arrival.
// Pieces may overlap what came before, and there may be holes for ever.
type Payload interface {
	// Data gets bytes from offset on (see [Observer]); they are valid during the call.
	Data(dir int, offset uint64, b []byte, timeNS int64, subflow int32)
	// Skip tells of payload that was sent and not captured.
	Skip(dir int, offset, size uint64, timeNS int64, subflow int32)
	// End tells that no more comes, before the connection's row is written.
	End()
}

// Observers tells all of them, in their order.
type Observers []Observer

// Interest is what at least one of them wants.
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
