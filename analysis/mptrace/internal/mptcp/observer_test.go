package mptcp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// observed records its calls.
type observed struct {
	data     []string // Data and Ack
	rest     []string
	segments int
}

func (o *observed) Subflow(s *Sub) {
	o.rest = append(o.rest, fmt.Sprintf("subflow %d.%d mptcp %v additional %v", s.Conn.ID, s.ID, s.Conn.MPTCP, s.Additional))
}

func (o *observed) Data(s *Sub, dir int, _ int64, lo, hi uint64, original *Sub) {
	what := "new"
	switch original {
	case nil:
	case s:
		what = "again"
	default:
		what = fmt.Sprintf("of %d", original.ID)
	}
	o.data = append(o.data, fmt.Sprintf("%d %s %s %d-%d", s.ID, tables.Directions[dir], what, lo, hi))
}

func (o *observed) Mapping(s *Sub, dir int, _ int64, lo, hi uint64) {
	o.rest = append(o.rest, fmt.Sprintf("mapping %d %s %d-%d", s.ID, tables.Directions[dir], lo, hi))
}

func (o *observed) Ack(s *Sub, dir int, _ int64, offset uint64, _ uint32) {
	o.data = append(o.data, fmt.Sprintf("%d %s ack %d", s.ID, tables.Directions[dir], offset))
}

func (o *observed) Event(s *Sub, row *tables.Event) {
	o.rest = append(o.rest, fmt.Sprintf("event %d %s", s.ID, row.Event))
}

func (o *observed) Segment(*Sub, int, *tcp.Segment) { o.segments++ }

func (o *observed) End(c *Conn, row *tables.Connection) {
	o.rest = append(o.rest, fmt.Sprintf("end %d %d", c.ID, row.BytesDown))
}

func TestObserverOfMPTCP(t *testing.T) {
	a, b := &observed{}, &observed{}
	k := newScript(t, 1, func(o *Options) { o.Observer = Observers{a, b} })
	k.openMPTCP()
	k.joinLTE()
	k.down(wifi, 0, 100, 0)
	k.down(lte, 0, 100, 100)
	k.down(lte, 100, 100, 50) // half of WiFi's, half its own
	k.wait(50)
	k.down(wifi, 0, 150, 0)                                                           // TCP retransmits 100 with 50 unmapped bytes
	k.send(server, wifi, packet.ACK, 301, 101, 100, dss(k.first(keyS)+300, 101, 100)) // the last 50 of it, and 50 more
	k.ack(lte, 200, 200)
	k.send(server, wifi, packet.ACK, 401, 101, 0, dataFIN(k.first(keyS)+400, 0, 1))
	r := k.end()
	wantData := []string{
		"0 down new 0-100", "1 down new 100-200", "1 down of 0 50-100", "1 down again 100-150",
		"0 down of 1 100-150", "0 down again 0-100", "0 down new 350-400", "0 down again 100-150", "1 down ack 200",
	}
	if !slices.Equal(a.data, wantData) {
		t.Errorf("%q", a.data)
	}
	wantRest := []string{
		"subflow 0.0 mptcp true additional false", "event 0 syn", "event 0 mp-capable", "event 0 mp-capable", "event 0 mp-capable",
		"event 0 established", "subflow 0.1 mptcp true additional true", "event 1 syn", "event 1 mp-join", "event 1 mp-join", "event 1 mp-join",
		"event 1 established", "event 0 first-data", "mapping 0 down 0-100", "event 1 first-data", "mapping 1 down 100-200", "mapping 1 down 50-150",
		"mapping 0 down 0-150", "mapping 0 down 300-400", "event 0 data-fin", fmt.Sprintf("end 0 %d", r.Connections[0].BytesDown),
	}
	if !slices.Equal(a.rest, wantRest) {
		t.Errorf("%q", a.rest)
	}
	if !slices.Equal(a.data, b.data) || a.segments != 13 || b.segments != 13 {
		t.Errorf("%d and %d segments", a.segments, b.segments)
	}
}

func TestObserverOfTCP(t *testing.T) {
	log := &observed{}
	k := newScript(t, 1, func(o *Options) { o.Observer = log })
	k.open(wifi, server, 0xfffffff0, 200)
	k.send(wifi, server, packet.ACK, 0xfffffff1, 201, 100)
	k.wait(50)
	k.send(wifi, server, packet.ACK, 0xfffffff1, 201, 150)
	k.send(server, wifi, packet.ACK, 201, 135, 10)
	k.end()
	want := []string{"0 down ack 0", "0 up new 0-100", "0 down ack 0", "0 up new 100-150", "0 up again 0-100", "0 down ack 0", "0 down new 0-10", "0 up ack 150"}
	if !slices.Equal(log.data, want) {
		t.Errorf("%q", log.data)
	}
}

// TestObserverWithoutStart: offsets count from the first byte seen.
func TestObserverWithoutStart(t *testing.T) {
	log := &observed{}
	k := newScript(t, 1, func(o *Options) { o.Observer = log })
	k.send(server, wifi, packet.ACK, 2000, 101, 100, dss(1<<40, 1000, 100))
	k.send(server, wifi, packet.ACK, 1950, 101, 50, dss(1<<40-50, 950, 50))
	k.send(server, wifi, packet.ACK, 2100, 101, 100, dss(1<<40+100, 1100, 100))
	k.end()
	if want := []string{"0 down new 0-100", "0 down new 100-200"}; !slices.Equal(log.data, want) {
		t.Errorf("%q", log.data)
	}
}

// payloads records the payload of a connection.
type payloads struct{ log []string }

func (p *payloads) Data(dir int, offset uint64, b []byte, _ int64, subflow int32) {
	p.log = append(p.log, fmt.Sprintf("%d %s %d %q", subflow, tables.Directions[dir], offset, b))
}

func (p *payloads) Skip(dir int, offset, size uint64, _ int64, subflow int32) {
	p.log = append(p.log, fmt.Sprintf("%d %s skip %d-%d", subflow, tables.Directions[dir], offset, offset+size))
}

func (p *payloads) End() { p.log = append(p.log, "end") }

func TestPayload(t *testing.T) {
	log, asked := &payloads{}, 0
	k := newScript(t, 1, func(o *Options) {
		o.Payload = func(*Conn) Payload { asked++; return log }
		o.Describe = func(row *tables.Connection, _ *Conn) { row.Host = strings.Join(log.log[len(log.log)-1:], "") }
	})
	down := k.first(keyS)
	k.openMPTCP()
	k.joinLTE()
	k.down(wifi, 0, 5, 0) // nothing captured: no reader yet
	k.send(server, wifi, packet.ACK, 206, 101, "hello", dss(down+5, 6, 5))
	k.send(server, lte, packet.ACK, 401, 301, "two mappings", dss(down+20, 1, 3))
	k.send(server, lte, packet.ACK, 413, 301, 0, dss(down+40, 4, 9))
	frame, size := frameOf(server, wifi, packet.ACK, 211, 101, "shortened", [][]byte{dss(down+10, 11, 9)})
	k.sendFrame(frame[:len(frame)-4], size, false)
	r := k.end()
	want := []string{`0 down 5 "hello"`, `1 down 20 "two"`, "1 down skip 40-49", `0 down 10 "short"`, "0 down skip 15-19", "end"}
	if !slices.Equal(log.log, want) || asked != 1 || r.Connections[0].Host != "end" {
		t.Errorf("%q, asked %d times", log.log, asked)
	}
}

func TestPayloadOfTCP(t *testing.T) {
	log := &payloads{}
	k := newScript(t, 1, func(o *Options) { o.Payload = func(*Conn) Payload { return log } })
	k.open(wifi, server, 100, 200)
	k.send(wifi, server, packet.ACK, 101, 201, "GET /")
	k.send(wifi, server, packet.ACK, 103, 201, "T / HTTP")
	k.end()
	if want := []string{`0 up 0 "GET /"`, `0 up 5 " HTTP"`, "end"}; !slices.Equal(log.log, want) {
		t.Errorf("%q", log.log)
	}
}
