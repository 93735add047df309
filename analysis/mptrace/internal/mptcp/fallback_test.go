package mptcp

import (
	"slices"
	"testing"

	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

func TestFallback(t *testing.T) {
	plainServer := func(k *script) {
		k.send(wifi, server, packet.SYN, 100, 0, 0, k.capable())
		k.send(server, wifi, packet.SYN|packet.ACK, 200, 101, 0)
		k.send(wifi, server, packet.ACK, 101, 201, 0)
		k.send(wifi, server, packet.ACK, 101, 201, 30)
	}
	noDSS := func(k *script) {
		k.openMPTCP()
		k.send(wifi, server, packet.ACK, 101, 201, 30, capableData(30))
		k.send(server, wifi, packet.ACK, 201, 131, 0)
	}
	noDSSAtAll := func(k *script) { // detected before the end
		k.openMPTCP()
		for i := range uint32(30) {
			k.send(wifi, server, packet.ACK, 101+i, 201, 1)
			k.send(server, wifi, packet.ACK, 201, 102+i, 0)
		}
	}
	infinite := func(k *script) {
		k.openMPTCP()
		k.send(wifi, server, packet.ACK, 101, 201, 10, capableData(10))
		k.send(server, wifi, packet.ACK, 201, 111, 0, dataACK(k.first(keyC)+10))
		k.send(wifi, server, packet.ACK, 111, 201, 10, dss(k.first(keyC)+10, 11, 0))
		k.send(wifi, server, packet.ACK, 121, 201, 10)
	}
	infiniteAlone := func(k *script) { // without payload, where the last mapping ended
		k.openMPTCP()
		k.send(wifi, server, packet.ACK, 101, 201, 10, dss(k.first(keyC), 1, 10))
		k.send(wifi, server, packet.ACK, 111, 201, 0, dss(k.first(keyC)+10, 11, 0))
		k.send(wifi, server, packet.ACK, 111, 201, 20)
	}
	fail := func(k *script) {
		k.openMPTCP()
		k.send(wifi, server, packet.ACK, 101, 201, 10, capableData(10))
		k.send(server, wifi, packet.ACK, 201, 111, 0, option(6, 0, byte(0), k.first(keyC)))
		k.send(wifi, server, packet.ACK, 111, 201, 20)
	}
	for _, c := range []struct {
		cause string
		play  func(*script)
		event bool // detected when it happens
	}{
		{"handshake", plainServer, true},
		{"no-dss", noDSS, false},
		{"no-dss", noDSSAtAll, true},
		{"infinite-mapping", infinite, true},
		{"infinite-mapping", infiniteAlone, true},
		{"mp-fail", fail, true},
	} {
		k := newScript(t, 1)
		c.play(k)
		early := slices.ContainsFunc(k.conn.events, func(e event) bool { return e.kind == evFallback })
		r := k.end()
		conn := r.Connections[0]
		if !conn.Fallback || conn.FallbackCause != c.cause || conn.Kind != "mptcp" || conn.BytesUp != 30 || conn.Subflows != 1 || r.Warnings.UnmappedBytes != 0 {
			t.Errorf("%s: %+v %+v", c.cause, conn, r.Warnings)
		}
		n := 0
		for _, ev := range r.Events {
			if ev.Event == "fallback" {
				n++
				if ev.Detail != c.cause {
					t.Errorf("%+v", ev)
				}
			}
		}
		if n != 1 || early != c.event {
			t.Errorf("%s: %d events, early %v", c.cause, n, early)
		}
	}
}

// TestRefusalTakenBack: a second SYN/ACK has the option that the first lacked.
func TestRefusalTakenBack(t *testing.T) {
	k := newScript(t, 1)
	k.send(wifi, server, packet.SYN, 100, 0, 0, k.capable())
	k.send(server, wifi, packet.SYN|packet.ACK, 200, 101, 0)
	k.wait(1000)
	k.send(server, wifi, packet.SYN|packet.ACK, 200, 101, 0, k.capable(keyS))
	k.send(wifi, server, packet.ACK, 101, 201, 0, k.capable(keyC, keyS))
	k.send(wifi, server, packet.ACK, 101, 201, 30, capableData(30))
	if c := k.end().Connections[0]; c.Fallback || c.BytesUp != 30 {
		t.Errorf("%+v", c)
	}
}

// TestFailOfASubflow: MP_FAIL with an RST ends one subflow, not MPTCP.
func TestFailOfASubflow(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	k.joinLTE()
	k.down(wifi, 0, 100, 0)
	k.down(lte, 0, 100, 100)
	k.send(lte, server, packet.RST|packet.ACK, 301, 401, 0, option(6, 0, byte(0), k.first(keyS)+100))
	r := k.end()
	if c := r.Connections[0]; c.Fallback || c.BytesDown != 200 {
		t.Errorf("%+v", c)
	}
	at := slices.IndexFunc(r.Events, func(e tables.Event) bool { return e.Event == "mp-fail" })
	if at < 0 || r.Events[at].Value != tables.Just(int64(100)) {
		t.Errorf("%+v", r.Events)
	}
}

// TestOffsetsGoOnAfterFallback: data after a fallback continues the earlier
// offsets and is acknowledged by TCP.
func TestOffsetsGoOnAfterFallback(t *testing.T) {
	log := &observed{}
	k := newScript(t, 1, func(o *Options) { o.Observer = log })
	k.openMPTCP()
	k.down(wifi, 0, 100, 0)
	k.ack(wifi, 100, 100)
	k.send(server, wifi, packet.ACK, 301, 101, 50, dss(k.first(keyS)+100, 101, 0))
	k.send(server, wifi, packet.ACK, 351, 101, 70)
	k.send(wifi, server, packet.ACK, 101, 421, 0)
	d := direct(t, k.end(), "mptcp", "down", -1)
	want := []string{"0 down new 0-100", "0 down ack 100", "0 down new 100-150", "0 down new 150-220", "0 down ack 220"}
	if !slices.Equal(log.data, want) || d.UniqueBytes != 220 || d.RTTSamples != 3 || d.FlightMax != 120 {
		t.Errorf("%q %+v", log.data, d)
	}
}
