package status

import (
	"cmp"
	"slices"
	"sync"

	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/internal/transport/session"
)

// Open holds the connections that a program carries now. The zero value is empty.
type Open struct {
	mu      sync.Mutex
	entries map[*entry]struct{}
	ended   int64
	up      int64 // bytes of ended connections
	down    int64
}

type entry struct {
	connection Connection
	opened     connlog.Moment
	relay      *relay.Session
	stream     *session.Stream // stream that carries it; nil: none
}

// Add adds a relayed connection, with the current fields of its record. The caller must
// call remove when the connection has ended.
func (o *Open) Add(record *connlog.Connection, r *relay.Session) (remove func()) {
	e := &entry{
		connection: Connection{ID: record.ID, Client: record.Client, Transport: record.Transport, Src: record.Src, Dst: record.Dst},
		opened:     record.Opened, relay: r,
	}
	for _, side := range []relay.Stream{r.A, r.B} {
		if st, ok := side.(*session.Stream); ok {
			e.stream = st
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entries == nil {
		o.entries = map[*entry]struct{}{}
	}
	o.entries[e] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.entries, e)
		o.ended++
		o.up += r.Up.Load()
		o.down += r.Down.Load()
	}
}

func (o *Open) connections() Connections {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := Connections{Open: len(o.entries), Ended: o.ended, BytesUp: o.up, BytesDown: o.down}
	for e := range o.entries {
		c.BytesUp += e.relay.Up.Load()
		c.BytesDown += e.relay.Down.Load()
	}
	return c
}

// own returns the connections that no stream carries, by ascending number.
func (o *Open) own() []Connection {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := []Connection{}
	for e := range o.entries {
		if e.stream == nil {
			c := e.connection
			c.AgeS, c.BytesUp, c.BytesDown = e.opened.Since(), e.relay.Up.Load(), e.relay.Down.Load()
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Connection) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// streams returns the streams of a session with their connections.
func (o *Open) streams(s *session.Session) []Stream {
	list := []Stream{}
	for _, row := range s.Streams() {
		list = append(list, Stream{StreamStatus: row})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for e := range o.entries {
		if e.stream == nil || e.stream.Session() != s {
			continue
		}
		i, found := slices.BinarySearchFunc(list, e.stream.ID(), func(row Stream, id uint32) int { return cmp.Compare(row.ID, id) })
		if found {
			list[i].Src, list[i].Dst = e.connection.Src, e.connection.Dst
		}
	}
	return list
}
