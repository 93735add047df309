package mptcp

import (
	"cmp"
	"slices"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// maxEvents bounds the events of one connection; later ones are dropped.
const maxEvents = 10000

// event is a row of the table events, as small as it can wait for its connection's end.
type event struct {
	timeNS, value int64
	sub           int32
	address       int32 // index into Conn.addresses, −1: none
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

// hasValue are the events with a value.
const hasValue = 1<<evPrio | 1<<evFail | 1<<evReset | 1<<evHandover

// note is what an event has to say besides.
type note uint8

const (
	noNote note = iota
	noteSYN
	noteSYNBackup
	noteSYNACK
	noteSYNACKBackup
	noteACK
	noteTransient
	noteHandshake // the causes of a fallback
	noteNoDSS
	noteFail
	noteInfinite
	noteNotExpected // of a RST
	noteWentOn
	notes
)

var noteTexts = [notes]string{
	"", "SYN", "SYN, backup", "SYN/ACK", "SYN/ACK, backup", "ACK", "transient",
	"handshake", "no-dss", "mp-fail", "infinite-mapping",
	"its number was not expected", "the connection went on",
}

// note writes an event down and tells the observer of it.
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

// keep keeps an event until the connection's rows are written.
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
	fewEvents   = 2  // of a connection that nobody answers
	usualEvents = 8  // of one that is answered
	mostEvents  = 96 // whose room is used again
)

// moreEvents makes room for the next events of a connection.
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

// giveEvents takes the room of a connection's events back.
func (e *Engine) giveEvents(c *Conn) {
	switch n := cap(c.events); {
	case n == fewEvents:
		e.spare.few.put(c.events)
	case n <= mostEvents:
		e.spare.events.put(c.events)
	}
	c.events = nil
}

// happened notes an event that is nothing but its kind, now.
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

// eventRows writes the events of a connection in the order of their time.
func (e *Engine) eventRows(c *Conn) {
	if e.out.Events == nil {
		return
	}
	slices.SortStableFunc(c.events, func(a, b event) int { return cmp.Compare(a.timeNS, b.timeNS) })
	for i := range c.events {
		c.eventRow(&c.events[i], e.out.Events.Next())
	}
}

// windowTurned notes that a side closes its window, or opens it again.
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
