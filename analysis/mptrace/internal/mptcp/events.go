package mptcp

import (
	"cmp"
	"slices"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// maxEvents is the maximum number of events per connection; later ones are
// dropped.
const maxEvents = 10000

// event is a row of the table events in a compact form; it waits for the end of
// its connection.
type event struct {
	timeNS, value int64
	sub           int32
	address       int32 // index in multi.addresses; −1: none
	addressID     int16 // −1: none
	port          uint16
	kind          eventKind
	dir           uint8
	note          note
}

type eventKind uint8

const (
	evSYN eventKind = iota
	evEstablished
	evFirstData
	evFIN
	evRST
	evCapable
	evJoin
	evAddAddr
	evAddAddrEcho
	evRemoveAddr
	evPrio
	evFail
	evFastclose
	evReset
	evInfinite
	evDataFIN
	evFallback
	evHandover
	evZeroWindow
	evWindowOpen
	evRSTIgnored
	eventKinds
)

var eventNames = [eventKinds]string{
	"syn", "established", "first-data", "fin", "rst", "mp-capable", "mp-join", "add-addr", "add-addr-echo", "remove-addr",
	"mp-prio", "mp-fail", "mp-fastclose", "mp-tcprst", "infinite-mapping", "data-fin", "fallback", "handover", "zero-window", "window-open",
	"rst-ignored",
}

// hasValue is the set of events that have a value.
const hasValue = 1<<evPrio | 1<<evFail | 1<<evReset | 1<<evHandover

// note is the detail of an event.
type note uint8

const (
	noNote note = iota
	noteSYN
	noteSYNBackup
	noteSYNACK
	noteSYNACKBackup
	noteACK
	noteTransient
	noteHandshake // causes of a fallback
	noteNoDSS
	noteFail
	noteInfinite
	noteNotExpected // reasons to ignore an RST
	noteWentOn
	notes
)

var noteTexts = [notes]string{
	"", "SYN", "SYN, backup", "SYN/ACK", "SYN/ACK, backup", "ACK", "transient",
	"handshake", "no-dss", "mp-fail", "infinite-mapping",
	"its number was not expected", "the connection went on",
}

// note records an event and reports it to the observer.
func (e *Engine) note(s *Sub, ev event) {
	if !e.eventful {
		return
	}
	c := s.Conn
	ev.sub = s.ID
	if e.interest&Events != 0 {
		row := new(tables.Event)
		c.eventRow(&ev, row)
		e.observer.Event(s, row)
	}
	e.keep(c, ev)
}

// keep stores an event until the rows of the connection are written.
func (e *Engine) keep(c *Conn, ev event) {
	if e.out.Events == nil || len(c.events) >= maxEvents {
		return
	}
	if len(c.events) == cap(c.events) {
		e.moreEvents(c)
	}
	c.events = append(c.events, ev)
}

const (
	fewEvents   = 2  // capacity for a connection without an answer
	usualEvents = 8  // capacity for a connection with an answer
	mostEvents  = 96 // maximum capacity of a slice that is reused
)

// moreEvents enlarges the list of events of a connection.
func (e *Engine) moreEvents(c *Conn) {
	before := c.events
	switch len(before) {
	case 0:
		c.events = e.spare.few.get(fewEvents)
	case fewEvents:
		c.events = append(e.spare.events.get(usualEvents), before...)
		e.spare.few.put(before)
	default:
		c.events = slices.Grow(before, len(before))
	}
}

// giveEvents returns the list of events of a connection for reuse.
func (e *Engine) giveEvents(c *Conn) {
	switch n := cap(c.events); {
	case n == fewEvents:
		e.spare.few.put(c.events)
	case n <= mostEvents:
		e.spare.events.put(c.events)
	}
	c.events = nil
}

// happened records an event at the current time without further details.
func (e *Engine) happened(s *Sub, dir uint8, kind eventKind) {
	e.note(s, event{timeNS: e.nowNS, kind: kind, dir: dir, address: -1, addressID: -1})
}

// eventRow fills in the row of an event.
func (c *Conn) eventRow(ev *event, row *tables.Event) {
	row.ConnectionID, row.SubflowID, row.TimeNS, row.Direction = c.ID, ev.sub, ev.timeNS, tables.Directions[ev.dir]
	row.Event, row.Detail = eventNames[ev.kind], noteTexts[ev.note]
	if ev.address >= 0 {
		row.Address = c.multi.addresses[ev.address].String()
	}
	if ev.port != 0 {
		row.Port = tables.Just(int32(ev.port))
	}
	if ev.addressID >= 0 {
		row.AddressID = tables.Just(int32(ev.addressID))
	}
	if hasValue>>ev.kind&1 != 0 {
		row.Value = tables.Just(ev.value)
	}
}

// eventRows writes the events of a connection in the order of time.
func (e *Engine) eventRows(c *Conn) {
	if e.out.Events == nil {
		return
	}
	slices.SortStableFunc(c.events, func(a, b event) int { return cmp.Compare(a.timeNS, b.timeNS) })
	for i := range c.events {
		c.eventRow(&c.events[i], e.out.Events.Next())
	}
}

// windowTurned records that a side closes its window or opens it again.
func (e *Engine) windowTurned(s *Sub, dir uint8, seg *tcp.Segment) {
	if seg.Packet.Flags&(packet.SYN|packet.RST) != 0 {
		return
	}
	s.side[dir].zeroWindow = !s.side[dir].zeroWindow
	kind := evWindowOpen
	if s.side[dir].zeroWindow {
		kind = evZeroWindow
	}
	e.happened(s, dir, kind)
}
