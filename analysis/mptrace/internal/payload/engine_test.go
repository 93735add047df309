package payload_test

import (
	"crypto/tls"
	"testing"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/payload"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// wiring connects a reader to an engine.
type wiring struct {
	tracker *tcp.Tracker
	engine  *mptcp.Engine
	now     int64
}

func wired(r *payload.Reader, out *tables.Sink, warnings *tables.Warnings) *wiring {
	w := &wiring{engine: mptcp.New(mptcp.Options{Payload: r.For, Describe: r.Describe, Network: func(string, *tcp.Flow) string { return "wifi" }}, out, warnings)}
	w.tracker = tcp.NewTracker(tcp.Options{OnEnd: w.engine.EndFlow, OnRetransmission: w.engine.Retransmission})
	return w
}

// send passes a segment of a TCP connection; captured is the captured size of
// its payload.
func (w *wiring) send(dir int, flags uint8, seq, ack uint32, b []byte, captured int) {
	w.now += 1e6
	p := &packet.Packet{TimeNS: w.now, Flags: flags, Seq: seq, Ack: ack, Payload: uint32(len(b)), Data: b[:min(captured, len(b))], Window: 65535, TTL: 64}
	p.Src, p.SrcPort, p.Dst, p.DstPort = packet.Addr{Lo: 0xffff_0a000009}, 40000, packet.Addr{Lo: 0xffff_0a000001}, 443
	if dir == down {
		p.Src, p.SrcPort, p.Dst, p.DstPort = p.Dst, p.DstPort, p.Src, p.SrcPort
	}
	var seg tcp.Segment
	w.tracker.Add(p, &seg)
	w.engine.Add(&seg)
}

// connection sends chunks over a TCP connection.
func (w *wiring) connection(chunks []chunk, captured int) {
	next := [2]uint32{4_294_967_000, 77} // the client's numbers wrap around
	w.send(up, packet.SYN, next[up]-1, 0, nil, 0)
	w.send(down, packet.SYN|packet.ACK, next[down]-1, next[up], nil, 0)
	w.send(up, packet.ACK, next[up], next[down], nil, 0)
	for _, c := range chunks {
		for b := c.b; len(b) > 0; b = b[min(1400, len(b)):] {
			part := b[:min(1400, len(b))]
			w.send(c.dir, packet.ACK, next[c.dir], next[1-c.dir], part, captured)
			next[c.dir] += uint32(len(part))
		}
	}
	w.send(up, packet.FIN|packet.ACK, next[up], next[down], nil, 0)
	w.send(down, packet.FIN|packet.ACK, next[down], next[up]+1, nil, 0)
	w.send(up, packet.ACK, next[up]+1, next[down]+1, nil, 0)
	w.tracker.Close()
	w.engine.Close()
}

func TestBehindTheEngine(t *testing.T) {
	chunks, keys := fetch(t, &tls.Config{MinVersion: tls.VersionTLS13}, true)
	out := &tables.Sink{Connections: &tables.Stream[tables.Connection]{}, Objects: &tables.Stream[tables.Object]{}}
	var warnings tables.Warnings
	r := payload.New(payload.Options{Keys: keys, Objects: out.Objects, Warnings: &warnings})
	w := wired(r, out, &warnings)
	w.connection(chunks, 1400)
	rows := out.Connections.Rows()
	if len(rows) != 1 || summary(rows[0]) != "web.example sni :0" || warnings != (tables.Warnings{}) || r.Kept() != 0 {
		t.Fatalf("%+v, %+v", rows, warnings)
	}
	objects := out.Objects.Rows()
	for i := range objects {
		if objects[i].ConnectionID != 0 {
			t.Errorf("connection %d", objects[i].ConnectionID)
		}
		objects[i].ConnectionID = 7 // as in check
	}
	check(t, objects, "https://web.example", "h2", inOrder, w.now)
}

// TestUntilCloseBehindTheEngine checks that an HTTP/1.0 body ends when the connection
// is closed in order.
func TestUntilCloseBehindTheEngine(t *testing.T) {
	chunks := []chunk{{up, []byte("GET /x HTTP/1.0\r\nHost: www.example\r\n\r\n")}, {down, []byte("HTTP/1.0 200 OK\r\n\r\n")}, {down, make([]byte, 5000)}}
	for _, captured := range []int{1400, 100} {
		out := &tables.Sink{Connections: &tables.Stream[tables.Connection]{}, Objects: &tables.Stream[tables.Object]{}}
		var warnings tables.Warnings
		wired(payload.New(payload.Options{Objects: out.Objects, Warnings: &warnings}), out, &warnings).connection(chunks, captured)
		rows := out.Objects.Rows()
		if len(rows) != 1 || !rows[0].Complete || rows[0].ResponseBody != 5000 || rows[0].Networks != "wifi:5019" || warnings != (tables.Warnings{}) {
			t.Errorf("%d captured: %+v, %+v", captured, rows, warnings)
		}
	}
}
