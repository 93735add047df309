package mptcp

import (
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// handovers returns the handover events of a connection: left → taken.
func handovers(r *tables.Result) [][2]int64 {
	var list [][2]int64
	for _, e := range r.Events {
		if e.Event == "handover" {
			list = append(list, [2]int64{e.Value.Value, int64(e.SubflowID)})
		}
	}
	return list
}

func TestHandovers(t *testing.T) {
	third := end{netip.MustParseAddr("10.0.2.1"), 40003}
	for _, c := range []struct {
		name string
		play func(k *script)
		want [][2]int64
	}{
		{"WiFi, then LTE for good", func(k *script) {
			k.down(wifi, 0, 100, 0)
			k.ack(wifi, 100, 100)
			k.down(lte, 0, 100, 100)
			k.ack(lte, 100, 200)
		}, [][2]int64{{0, 1}}},
		{"and what WiFi sends into the void does not count", func(k *script) {
			k.down(wifi, 0, 100, 0)
			k.down(lte, 0, 100, 100)
			k.wait(300)
			k.down(wifi, 0, 100, 0)
			k.send(server, wifi, packet.RST, 301, 0, 0)
		}, [][2]int64{{0, 1}}},
		{"WiFi still acknowledges", func(k *script) {
			k.down(wifi, 0, 100, 0)
			k.down(lte, 0, 100, 100)
			k.ack(wifi, 100, 200)
		}, nil},
		{"WiFi is used again", func(k *script) {
			k.down(wifi, 0, 100, 0)
			k.ack(wifi, 100, 100)
			k.down(lte, 0, 100, 100)
			k.down(wifi, 100, 100, 200)
		}, nil},
		{"the other direction moves", func(k *script) {
			k.down(wifi, 0, 100, 0)
			k.ack(wifi, 100, 100)
			k.send(lte, server, packet.ACK, 301, 401, 10, dss(k.first(keyC), 1, 10))
		}, [][2]int64{{0, 1}}},
		{"a reinjection alone is no move", func(k *script) {
			k.down(wifi, 0, 100, 0)
			k.down(lte, 0, 100, 0)
		}, nil},
		{"twice", func(k *script) {
			k.down(wifi, 0, 100, 0)
			k.ack(wifi, 100, 100)
			k.down(lte, 0, 100, 100)
			k.ack(lte, 100, 200)
			k.joinFrom(third, 300, 400, 0)
			k.send(server, third, packet.ACK, 401, 301, 100, dss(k.first(keyS)+200, 1, 100))
		}, [][2]int64{{0, 1}, {1, 2}}},
	} {
		k := newScript(t, 1)
		k.openMPTCP()
		k.joinLTE()
		c.play(k)
		r := k.end()
		if got := handovers(r); !slices.Equal(got, c.want) || int(r.Connections[0].Handovers) != len(c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
		if !slices.IsSortedFunc(r.Events, func(a, b tables.Event) int { return int(a.TimeNS - b.TimeNS) }) {
			t.Errorf("%s: events out of order", c.name)
		}
	}
}

// shortLived replaces the tracker by one that forgets closed flows immediately.
func shortLived(k *script) {
	k.tracker = tcp.NewTracker(tcp.Options{OnEnd: k.engine.EndFlow, OnRetransmission: k.engine.Retransmission, ClosedNS: 1e9, IdleNS: 20e9})
}

// noise sends a packet of another flow: time passes.
func (k *script) noise() { k.send(server, end{lte.addr, 9}, packet.ACK, 1, 1, 0) }

// TestBreakBeforeMake: a connection survives for a minute without subflows.
func TestBreakBeforeMake(t *testing.T) {
	for seconds, connections := range map[int64]int{30: 2, 70: 3} {
		k := newScript(t, 1)
		shortLived(k)
		k.openMPTCP()
		k.down(wifi, 0, 100, 0)
		k.send(wifi, server, packet.RST|packet.ACK, 101, 301, 0)
		k.noise()
		for range seconds {
			k.wait(1000)
			k.noise()
		}
		if early := len(k.sink.Connections.Rows()); (early == 1) != (connections == 3) {
			t.Errorf("after %d s, %d connections have ended", seconds, early)
		}
		k.joinLTE()
		k.down(lte, 0, 100, 100)
		r := k.end()
		if len(r.Connections) != connections {
			t.Errorf("after %d s: %+v", seconds, r.Connections)
		}
		if c := r.Connections[0]; connections == 2 && (c.BytesDown != 200 || c.Handovers != 1 || c.SubflowsUsed != 2) {
			t.Errorf("%+v", c)
		}
	}
}

// TestClosedConnectionsEnd: nothing is kept of a closed connection.
func TestClosedConnectionsEnd(t *testing.T) {
	fin := func(k *script) {
		k.send(server, wifi, packet.ACK|packet.FIN, 201, 101, 0, dataFIN(k.first(keyS), 0, 1))
		k.send(wifi, server, packet.ACK|packet.FIN, 101, 202, 0, dataFIN(k.first(keyC), 0, 1))
		k.send(server, wifi, packet.ACK, 202, 102, 0)
	}
	fastclose := func(k *script) {
		k.send(wifi, server, packet.RST|packet.ACK, 101, 201, 0, option(7, 0, byte(0), uint64(keyS)))
	}
	for want, play := range map[string]func(*script){"fin": fin, "fastclose": fastclose} {
		k := newScript(t, 1)
		shortLived(k)
		k.openMPTCP()
		play(k)
		for range 3 {
			k.wait(1000)
			k.noise()
		}
		rows := k.sink.Connections.Rows()
		if len(rows) != 1 || rows[0].Closed != want || len(k.engine.tokens) != 0 {
			t.Errorf("%s: %+v, %d tokens", want, rows, len(k.engine.tokens))
		}
	}
}

func TestConnectionsEndInOrder(t *testing.T) {
	k := newScript(t, 1)
	for i := range uint32(50) {
		from := end{wifi.addr, uint16(1000 + i)}
		k.send(from, server, packet.SYN, 100, 0, 0, k.capable())
		k.send(server, from, packet.SYN|packet.ACK, 200, 101, 0, k.capable(uint64(i)))
		k.send(from, server, packet.ACK, 101, 201, 0, k.capable(keyC, uint64(i)))
	}
	k.tracker.Close()
	if n := k.engine.waiting.Len(); n != 50 {
		t.Errorf("%d connections wait", n)
	}
	k.engine.Close()
	for i, c := range k.sink.Connections.Rows() {
		if c.ConnectionID != int32(i) {
			t.Fatalf("connection %d ends as number %d", c.ConnectionID, i)
		}
	}
	if len(k.engine.tokens) != 0 {
		t.Errorf("%d tokens are kept", len(k.engine.tokens))
	}
}

// TestFloods sends very many handshakes that are never completed: the memory
// for them does not grow.
func TestFloods(t *testing.T) {
	const n = 60000
	other := func(i uint32) end {
		return end{netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), 999}
	}
	for name, packets := range map[string]func(k *script, i uint32){
		"SYN": func(k *script, i uint32) { k.send(other(i), server, packet.SYN, i, 0, 0) },
		"MP_CAPABLE": func(k *script, i uint32) {
			k.send(other(i), server, packet.SYN, i, 0, 0, option(0, 0, byte(1), uint64(i)))
		},
		"handshakes": func(k *script, i uint32) {
			k.send(other(i), server, packet.SYN, i, 0, 0, k.capable())
			k.send(server, other(i), packet.SYN|packet.ACK, 200, i+1, 0, k.capable(uint64(i)))
			k.send(other(i), server, packet.ACK, i+1, 201, 0, k.capable(uint64(i)+1<<32, uint64(i)))
		},
		"MP_JOIN": func(k *script, i uint32) { k.send(other(i), server, packet.SYN, i, 0, 0, joinSYN(i, 7, 2, 0)) },
		"MP_JOIN of one token": func(k *script, i uint32) {
			k.send(other(i), server, packet.SYN, i, 0, 0, joinSYN(k.token(keyS), 7, 2, 0))
		},
		"MP_JOIN of a connection": func(k *script, i uint32) {
			if i%1000 == 0 {
				k.send(wifi, server, packet.ACK, 101, 201, 0)
			}
			k.send(other(i), server, packet.SYN, i, 0, 0, joinSYN(k.token(keyS), 7, 2, 0))
		},
	} {
		k := newScript(t, 1)
		k.sink = &tables.Sink{}
		k.engine = New(Options{}, k.sink, &k.warnings)
		k.tracker = tcp.NewTracker(tcp.Options{OnEnd: k.engine.EndFlow, MaxFlows: 500})
		if name == "MP_JOIN of a connection" {
			k.openMPTCP()
		}
		before := heap()
		for i := range uint32(n) {
			packets(k, i)
		}
		if grown := heap() - before; grown > 7<<20 {
			t.Errorf("%s: %d kB", name, grown>>10)
		}
		if held := len(k.engine.tokens) + len(k.engine.orphans) + k.engine.waiting.Len(); held > 3*500+3*maxWaiting {
			t.Errorf("%s: %d tokens, %d orphans, %d waiting", name, len(k.engine.tokens), len(k.engine.orphans), k.engine.waiting.Len())
		}
		k.end()
		if held := len(k.engine.tokens) + len(k.engine.orphans) + k.engine.waiting.Len(); held != 0 {
			t.Errorf("%s: %d are kept at the end", name, held)
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMissedConnections: a connection that stops waiting early is counted if a
// later subflow might have been its own, and not counted at the end.
func TestMissedConnections(t *testing.T) {
	const n = maxWaiting + 400
	for flows, want := range map[int]int64{100: n - 100 - maxWaiting, 0: 0} {
		k := newScript(t, 1)
		k.tracker = tcp.NewTracker(tcp.Options{OnEnd: k.engine.EndFlow, MaxFlows: flows})
		for i := range uint32(n) {
			from := end{wifi.addr, uint16(1000 + i)}
			k.send(from, server, packet.SYN, 100, 0, 0, k.capable())
			k.send(server, from, packet.SYN|packet.ACK, 200, 101, 0, k.capable(uint64(i)))
			k.send(from, server, packet.ACK, 101, 201, 0, k.capable(keyC, uint64(i)))
		}
		if r := k.end(); r.Warnings.FlowsEvicted != want || len(r.Connections) != n {
			t.Errorf("at most %d flows: %d evicted, want %d; %d connections", flows, r.Warnings.FlowsEvicted, want, len(r.Connections))
		}
	}
}

// TestMemoryIsUsedAgain: reused memory does not change the rows of a
// connection.
func TestMemoryIsUsedAgain(t *testing.T) {
	other := func(i int) end { return end{netip.AddrFrom4([4]byte{11, 0, byte(i >> 8), byte(i)}), 999} }
	flood := func(k *script) {
		for i := range 300 {
			from := other(i)
			switch i % 5 {
			case 0:
				k.send(from, server, packet.SYN, uint32(i), 0, 0)
			case 1:
				k.send(from, server, packet.SYN, uint32(i), 0, 0, option(0, 0, byte(1), uint64(i)))
			case 2:
				k.send(from, server, packet.SYN, uint32(i), 0, 0, joinSYN(uint32(i), 7, 2, 1))
			case 3:
				k.send(server, from, packet.RST, uint32(i), 0, 0, option(8, 1, byte(3)))
			case 4:
				k.open(from, server, 100, 200)
				k.send(from, server, packet.ACK, 101, 201, 10, option(3, 1, byte(9), []byte{192, 0, 2, 1}))
				k.send(server, from, packet.ACK, 201, 111, 20, dss(5, 1, 20))
			}
		}
		k.wait(10 * 3600e3) // all are idle for too long
	}
	talk := func(k *script) []any {
		k.send(lte, server, packet.SYN, 1, 0, 0)
		first := k.conn.ID
		k.openMPTCP()
		k.joinFrom(end{lte.addr, 8}, 300, 400, 0)
		k.send(server, wifi, packet.ACK, 201, 101, 100, dss(k.first(keyS), 1, 100))
		k.send(wifi, server, packet.ACK, 101, 301, 0, dataACK(k.first(keyS)+100))
		k.open(end{wifi.addr, 7}, server, 100, 200)
		k.send(end{wifi.addr, 7}, server, packet.ACK, 101, 201, 10)
		k.send(other(0), server, packet.SYN, 5, 0, 0, joinSYN(99, 7, 2, 0))
		r := k.end()
		return []any{
			from(r.Connections, first), from(r.Subflows, first), from(r.Directions, first), from(r.RTT, first), from(r.Bursts, first),
			from(r.Throughput, first), from(r.ACKSizes, first), from(r.Events, first),
		}
	}
	used, fresh := newScript(t, 1), newScript(t, 1)
	used.tracker = tcp.NewTracker(tcp.Options{OnEnd: used.engine.EndFlow, MaxFlows: 20})
	flood(used)
	fresh.now = used.now
	got, want := talk(used), talk(fresh)
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) || reflect.ValueOf(got[i]).Len() == 0 {
			t.Errorf("%+v\nwant\n%+v", got[i], want[i])
		}
	}
}

// from returns the rows of the connections from number first on; number first
// becomes 0.
func from[R any](rows []R, first int32) []R {
	var later []R
	for _, row := range rows {
		id := reflect.ValueOf(&row).Elem().Field(0)
		if id.Int() >= int64(first) {
			id.SetInt(id.Int() - int64(first))
			later = append(later, row)
		}
	}
	return later
}

// TestManySubflows: if there are very many subflows, the rows of ended ones are
// written before the connection's row, which still counts them.
func TestManySubflows(t *testing.T) {
	k := newScript(t, 1)
	shortLived(k)
	k.openMPTCP()
	const n = 200
	for i := range n {
		from := end{lte.addr, uint16(1000 + i)}
		k.joinFrom(from, 300, 400, 0)
		k.send(server, from, packet.ACK, 401, 301, 10, dss(k.first(keyS)+uint64(10*i), 1, 10))
		k.send(server, from, packet.RST, 411, 0, 0)
		k.wait(500)
		k.send(wifi, server, packet.ACK, 101, 201, 0)
	}
	if n := len(k.conn.Subs); n > maxSubs+5 {
		t.Errorf("%d subflows are held", n)
	}
	r := k.end()
	c, d := r.Connections[0], direct(t, r, "mptcp", "down", -1)
	if len(r.Connections) != 1 || c.Subflows != n+1 || c.SubflowsAsked != n+1 || c.SubflowsUsed != n || c.BytesDown != 10*n || len(r.Subflows) != n+1 ||
		d.Segments != n || d.Bytes != 10*n {
		t.Errorf("%d rows, %+v", len(r.Subflows), c)
	}
}

func TestEventsAreBounded(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	for range 2 * maxEvents {
		k.send(wifi, server, packet.ACK, 101, 201, 0, option(3, 1, byte(9), []byte{192, 0, 2, 1}))
	}
	if r := k.end(); len(r.Events) != maxEvents {
		t.Errorf("%d events", len(r.Events))
	}
}

// TestEndTwice: a repeated end counts once.
func TestEndTwice(t *testing.T) {
	k := newScript(t, 1)
	k.open(wifi, server, 100, 200)
	f := k.conn.Subs[0].Flow
	k.engine.EndFlow(f)
	k.engine.EndFlow(f)
	if r := k.end(); len(r.Connections) != 1 || len(r.Subflows) != 1 {
		t.Errorf("%+v", r.Connections)
	}
}
