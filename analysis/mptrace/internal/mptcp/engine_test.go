package mptcp

import (
	"fmt"
	"slices"
	"testing"

	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// direct returns the row of a connection's only direction at a level.
func direct(t *testing.T, r *tables.Result, level, direction string, subflow int32) tables.Direction {
	t.Helper()
	for _, d := range r.Directions {
		if d.Level == level && d.Direction == direction && d.SubflowID == subflow {
			return d
		}
	}
	t.Fatalf("no row %s %s %d", level, direction, subflow)
	return tables.Direction{}
}

// names returns the events of a connection in order.
func names(r *tables.Result) []string {
	var list []string
	for _, e := range r.Events {
		list = append(list, fmt.Sprintf("%d:%s", e.SubflowID, e.Event))
	}
	return list
}

func TestPlainTCP(t *testing.T) {
	k := newScript(t, 1)
	const isn = 0xffffff00 // wraps around
	k.send(wifi, server, packet.SYN, isn, 0, 0)
	k.wait(1000)
	k.open(wifi, server, isn, 200)
	for i := range uint32(3) {
		k.send(wifi, server, packet.ACK, isn+1+i*1000, 201, 1000)
	}
	k.send(wifi, server, packet.ACK, 1+1000-0x100+500, 201, 1000) // seen before
	k.send(server, wifi, packet.ACK|packet.FIN, 201, 2745, 50)
	k.send(wifi, server, packet.ACK|packet.FIN, 2745, 252, 0)
	k.send(server, wifi, packet.ACK, 252, 2746, 0)
	r := k.end()
	c, s := r.Connections[0], r.Subflows[0]
	if len(r.Connections) != 1 || c.Kind != "tcp" || c.MPTCPVersion != -1 || c.BytesUp != 3000 || c.BytesDown != 50 || c.Fallback ||
		c.Closed != "fin" || c.Interfaces != "wlan0" || c.Networks != "wifi" || c.Subflows != 1 || c.SubflowsUsed != 1 || c.Token != "" || !c.SYNSeen {
		t.Errorf("%+v", c)
	}
	if s.SYNRetries != 1 || s.RTTHandshakeMS.Known || s.PayloadUp != 4000 || s.UniqueUp != 3000 || !s.Established || !s.Used ||
		s.Role != "initial" || s.OpenedBy != "client" || s.AddressID.Known || s.HMAC != "" {
		t.Errorf("%+v", s)
	}
	if len(r.Directions) != 2 || direct(t, r, "tcp", "up", 0).RetransmittedBytes != 1000 {
		t.Errorf("%+v", r.Directions)
	}
	if len(r.Retransmissions) != 1 || r.Retransmissions[0].Seq != 1500 || r.Retransmissions[0].Bytes != 1000 {
		t.Errorf("%+v", r.Retransmissions)
	}
	if want := []string{"0:syn", "0:established", "0:first-data", "0:first-data", "0:fin", "0:fin"}; !slices.Equal(names(r), want) {
		t.Errorf("%v", names(r))
	}
}

func TestPortReuse(t *testing.T) {
	k := newScript(t, 1)
	k.open(wifi, server, 100, 200)
	k.send(wifi, server, packet.ACK, 101, 201, 10)
	k.open(wifi, server, 5000, 6000)
	k.send(wifi, server, packet.ACK, 5001, 6001, 20)
	k.send(server, wifi, packet.RST, 6001, 0, 0)
	r := k.end()
	if len(r.Connections) != 2 || r.Connections[0].BytesUp != 10 || r.Connections[1].BytesUp != 20 ||
		r.Connections[0].Closed != "open" || r.Connections[1].Closed != "rst" {
		t.Errorf("%+v", r.Connections)
	}
}

func TestHandshakeNotSeen(t *testing.T) {
	k := newScript(t, 1)
	k.send(server, wifi, packet.ACK, 201, 101, 1000)
	k.send(wifi, server, packet.ACK, 101, 1201, 0)
	if c := k.end().Connections[0]; c.ClientPort != 40001 || c.BytesDown != 1000 || c.BytesUp != 0 || c.Subflows != 1 || c.SYNSeen {
		t.Errorf("%+v", c)
	}
}

func TestRefused(t *testing.T) {
	k := newScript(t, 1)
	k.send(wifi, server, packet.SYN, 100, 0, 0)
	k.send(server, wifi, packet.RST|packet.ACK, 0, 101, 0)
	r := k.end()
	if c := r.Connections[0]; c.Subflows != 0 || c.SubflowsAsked != 1 || c.Closed != "rst" || r.Subflows[0].Established {
		t.Errorf("%+v", c)
	}
}

// TestTwoSubflows plays the possible kinds of bytes on two subflows: new, with
// a late mapping, retransmitted by TCP, reinjected, and carried again by the
// same subflow.
func TestTwoSubflows(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint8) {
		k := newScript(t, version)
		up, down := k.first(keyC), k.first(keyS)
		k.openMPTCP()
		if version == 1 {
			k.send(wifi, server, packet.ACK, 101, 201, 50, capableData(50))
		} else {
			k.send(wifi, server, packet.ACK, 101, 201, 50, dss(up, 1, 50))
		}
		k.joinFrom(lte, 300, 400, 1)
		// One mapping of 3000 bytes for three segments; only the last segment
		// contains it.
		k.send(server, wifi, packet.ACK, 201, 151, 1000)
		k.send(server, wifi, packet.ACK, 1201, 151, 1000)
		k.send(server, wifi, packet.ACK, 2201, 151, 1000, dss(down, 1, 3000))
		// 1000 new bytes on LTE, then 500 of WiFi's again (reinjected), twice.
		k.send(server, lte, packet.ACK, 401, 301, 1000, dss32(down+3000, 1, 1000))
		k.send(server, lte, packet.ACK, 1401, 301, 500, dss32(down+2000, 1001, 500))
		k.wait(50)
		k.send(server, lte, packet.ACK, 1401, 301, 500, dss32(down+2000, 1001, 500))
		// The subflow's bytes under new sequence numbers: neither.
		k.send(server, lte, packet.ACK, 1901, 301, 100, dss32(down+3000, 1501, 100))
		k.send(server, wifi, packet.ACK, 3201, 151, 10, dataFIN(down+4000, 3001, 11))
		k.send(wifi, server, packet.ACK, 151, 3211, 0, dataFIN(up+50, 0, 1))
		r := k.end()
		c := r.Connections[0]
		if len(r.Connections) != 1 || c.Kind != "mptcp" || c.MPTCPVersion != int32(version) || c.BytesUp != 50 || c.BytesDown != 4010 ||
			c.ReinjectedDn != 500 || c.ReinjectedUp != 0 || c.Closed != "fin" || c.Fallback || c.Subflows != 2 || c.SubflowsUsed != 2 ||
			c.Interfaces != "wlan0,rmnet0" || c.Networks != "wifi,cellular" || c.Token != fmt.Sprintf("%08x", k.token(keyS)) ||
			c.TokenClient != fmt.Sprintf("%08x", k.token(keyC)) || c.JoinDelayMS != tables.Just(4.0) {
			t.Errorf("%+v", c)
		}
		if s := r.Subflows[1]; s.Role != "additional" || !s.Backup || !s.Established || s.JoinDelayMS != tables.Just(4.0) || s.HMAC != "ok" ||
			s.RTTHandshakeMS != tables.Just(2.0) || s.UniqueDown != 1600 || s.AddressID != tables.Just(int32(2)) {
			t.Errorf("%+v", s)
		}
		d := direct(t, r, "mptcp", "down", -1)
		if d.UniqueBytes != 4010 || d.ReinjectedBytes != 500 || d.Bytes != 5110 || d.MissingBytes != 0 || d.Mappings != 5 ||
			d.Bursts != 3 || d.Switches != 2 || d.DataFINNS.Value != start+65e6 {
			t.Errorf("%+v", d)
		}
		if d := direct(t, r, "tcp", "down", 1); d.ReinjectedBytes != 500 || d.RetransmittedBytes != 500 || d.Mappings != 3 {
			t.Errorf("%+v", d)
		}
		if r.Warnings != (tables.Warnings{}) {
			t.Errorf("%+v", r.Warnings)
		}
	})
}

// TestOrderOfMappings plays the same segments in all orders: the byte counts
// are equal.
func TestOrderOfMappings(t *testing.T) {
	order := []int{0, 1, 2, 3}
	permute(order, 0, func() {
		k := newScript(t, 1)
		down := k.first(keyS)
		segments := []func(){
			func() { k.send(server, wifi, packet.ACK, 201, 101, 100, dss(down, 1, 250)) },
			func() { k.send(server, wifi, packet.ACK, 301, 101, 100) },
			func() { k.send(server, wifi, packet.ACK, 401, 101, 100, dss(down+250, 251, 50)) },
			func() { k.send(server, wifi, packet.ACK, 351, 101, 100) },
		}
		k.openMPTCP()
		for _, i := range order {
			segments[i]()
		}
		r := k.end()
		if c := r.Connections[0]; c.BytesDown != 300 || c.Fallback || r.Warnings.UnmappedBytes != 0 {
			t.Errorf("%v: %+v %+v", slices.Clone(order), c, r.Warnings)
		}
	})
}

func permute(a []int, from int, each func()) {
	if from == len(a) {
		each()
		return
	}
	for i := from; i < len(a); i++ {
		a[from], a[i] = a[i], a[from]
		permute(a, from+1, each)
		a[from], a[i] = a[i], a[from]
	}
}

// TestFirstMappingHolds sends a mapping that contradicts an earlier one.
func TestFirstMappingHolds(t *testing.T) {
	k := newScript(t, 1)
	down := k.first(keyS)
	k.openMPTCP()
	k.send(server, wifi, packet.ACK, 201, 101, 100, dss(down, 1, 200))
	k.send(server, wifi, packet.ACK, 301, 101, 200, dss(down+5000, 51, 250))
	r := k.end()
	d := direct(t, r, "mptcp", "down", -1)
	if d.UniqueBytes != 300 || d.MissingBytes != 4950 {
		t.Errorf("%+v", d)
	}
}

func TestFarMappingIsNotUsed(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	k.send(server, wifi, packet.ACK, 201, 101, 100, dss(k.first(keyS)+1<<50, 1, 100))
	k.send(server, wifi, packet.ACK, 301, 101, 100, dss(k.first(keyS)-10, 101, 100))
	r := k.end()
	if r.Warnings.MappingOutOfRange != 2 || r.Warnings.UnmappedBytes != 200 || r.Connections[0].BytesDown != 0 {
		t.Errorf("%+v", r.Warnings)
	}
}

// TestLongConnection mixes 32- and 64-bit numbers over more than 4 GB of data.
func TestLongConnection(t *testing.T) {
	k := newScript(t, 1)
	down := k.first(keyS)
	k.openMPTCP()
	const step = 60000
	seq, at := uint32(201), uint64(0)
	for at < 5<<30 {
		signal := dss(down+at, uint32(1+at), step)
		if at/step%3 != 0 {
			signal = dss32(down+at, uint32(1+at), step)
		}
		k.send(server, wifi, packet.ACK, seq, 101, step, signal)
		seq += step
		at += step
		ack := dataACK(down + at)
		if at/step%2 != 0 {
			ack = dataACK32(down + at)
		}
		k.send(wifi, server, packet.ACK, 101, seq, 0, ack)
	}
	r := k.end()
	d := direct(t, r, "mptcp", "down", -1)
	if d.UniqueBytes != int64(at) || d.MissingBytes != 0 || d.FlightMax != step || d.RTTSamples != int64(at/step) || d.RTTMaxMS != tables.Just(1.0) {
		t.Errorf("%d bytes: %+v", at, d)
	}
	if r.Warnings != (tables.Warnings{}) {
		t.Errorf("%+v", r.Warnings)
	}
}

// TestStartNotSeen starts in the middle: 32-bit numbers, then 64-bit ones, an
// earlier segment, and no SYN.
func TestStartNotSeen(t *testing.T) {
	k := newScript(t, 1)
	const dsn = 0x5_fffffff0
	k.send(server, wifi, packet.ACK, 2000, 101, 100, dss32(dsn, 1800, 100))
	k.send(server, wifi, packet.ACK, 2100, 101, 100, dss(dsn+100, 1900, 100))
	k.send(server, wifi, packet.ACK, 1900, 101, 100, dss(dsn-100, 1700, 100))
	k.send(wifi, server, packet.ACK, 101, 2200, 0, dataACK(dsn+200))
	r := k.end()
	c, d := r.Connections[0], direct(t, r, "mptcp", "down", -1)
	if c.Kind != "mptcp" || c.MPTCPVersion != -1 || c.Token != "" || c.Fallback || c.BytesDown != 300 || d.MissingBytes != 0 || d.UniqueBytes != 300 {
		t.Errorf("%+v\n%+v", c, d)
	}
	if r.Warnings != (tables.Warnings{}) {
		t.Errorf("%+v", r.Warnings)
	}
}

// TestBelowTheFirstByteSeen: a byte below the first one seen, with a hole above
// it.
func TestBelowTheFirstByteSeen(t *testing.T) {
	k := newScript(t, 1)
	k.send(server, wifi, packet.ACK, 2000, 101, 100, dss(1<<40, 1000, 100))
	k.send(server, wifi, packet.ACK, 2200, 101, 100, dss(1<<40+200, 1200, 100))
	k.send(server, wifi, packet.ACK, 1900, 101, 10, dss(1<<40-100, 900, 10))
	d := direct(t, k.end(), "mptcp", "down", -1)
	if d.UniqueBytes != 210 || d.MissingBytes != 100 {
		t.Errorf("%+v", d)
	}
}

// TestEarlyBytesWithoutMapping: a connection is recognised as MPTCP after its
// first bytes; a later mapping covers them too.
func TestEarlyBytesWithoutMapping(t *testing.T) {
	k := newScript(t, 1)
	k.send(server, wifi, packet.ACK, 2000, 101, 100)
	k.send(server, wifi, packet.ACK, 2100, 101, 100)
	k.send(server, wifi, packet.ACK, 2200, 101, 100, dss(1<<40, 500, 100))
	k.send(server, wifi, packet.ACK, 2300, 101, 100, dss(1<<40-50, 450, 50))
	r := k.end()
	if c := r.Connections[0]; c.BytesDown != 150 || r.Warnings.UnmappedBytes != 250 {
		t.Errorf("%+v %+v", c, r.Warnings)
	}
}

func TestDataLevelAcknowledgements(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	k.joinLTE()
	k.down(wifi, 0, 1000, 0)      // t
	k.down(lte, 0, 1000, 1000)    // t+1
	k.down(wifi, 1000, 500, 2000) // t+2
	k.ack(wifi, 1000, 1000)       // t+3: 3 ms
	k.ack(lte, 1000, 2500)        // t+4: 3 ms, 2 ms
	k.ack(lte, 1000, 2500)        // nothing new
	r := k.end()
	d := direct(t, r, "mptcp", "down", -1)
	if d.RTTSamples != 3 || d.RTTMinMS != tables.Just(2.0) || d.RTTMaxMS != tables.Just(3.0) || d.RTTLastMS != tables.Just(3.0) ||
		d.FlightMax != 2500 || d.FlightMean != tables.Just(5500.0/3) || d.InitialWindow != 2500 || d.SegmentMin != 500 ||
		d.FirstACKNS != tables.Just[int64](start+10e6) || d.LastACKNS != tables.Just[int64](start+11e6) || d.Bursts != 3 {
		t.Errorf("%+v", d)
	}
	var acks []tables.ACKSize
	var rtts int
	for _, a := range r.ACKSizes {
		if a.Level == "mptcp" {
			acks = append(acks, a)
		}
	}
	for _, s := range r.RTT {
		if s.Level == "mptcp" {
			rtts++
		}
	}
	want := []tables.ACKSize{
		{SubflowID: -1, Level: "mptcp", Direction: "down", Bytes: 1000, Count: 1},
		{SubflowID: -1, Level: "mptcp", Direction: "down", Bytes: 1500, Count: 1},
	}
	if !slices.Equal(acks, want) || rtts != 3 {
		t.Errorf("%+v, %d samples", acks, rtts)
	}
	if up := direct(t, r, "mptcp", "up", -1); up.WindowMax != tables.Just[int64](0xfff0) || up.UniqueBytes != 0 {
		t.Errorf("%+v", up)
	}
}

func TestDataFINIsAcknowledged(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	k.send(server, wifi, packet.ACK, 201, 101, 10, dataFIN(k.first(keyS), 1, 11))
	k.ack(wifi, 10, 10)
	k.ack(wifi, 10, 11)
	d := direct(t, k.end(), "mptcp", "down", -1)
	if d.UniqueBytes != 10 || d.DataFINNS != tables.Just[int64](start+4e6) || d.FINACKNS != tables.Just[int64](start+6e6) {
		t.Errorf("%+v", d)
	}
}

func TestBurstsAndThroughput(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	k.joinLTE()
	at := [2]uint32{}
	for i := range uint64(600) {
		on := int(i / 20 % 2)
		k.down([]end{wifi, lte}[on], at[on], 100, i*100)
		at[on] += 100
	}
	r := k.end()
	d := direct(t, r, "mptcp", "down", -1)
	if d.Bursts != 30 || d.Switches != 29 || !d.SwitchesPS.Known || len(r.Bursts) != 30 {
		t.Errorf("%+v %d", d, len(r.Bursts))
	}
	want := tables.Burst{SubflowID: 1, Direction: "down", StartNS: start + 27e6, DurationS: .019, Offset: 2000, Bytes: 2000, Packets: 20, Weight: 1}
	if r.Bursts[1] != want {
		t.Errorf("%+v", r.Bursts[1])
	}
	packets, windows := map[string]int32{}, map[string]int{}
	for _, w := range r.Throughput {
		level := fmt.Sprint(w.Level, w.SubflowID)
		packets[level] += w.Packets
		windows[level]++
		if w.Bytes != int64(w.Packets)*100 {
			t.Errorf("%+v", w)
		}
	}
	if fmt.Sprint(packets) != "map[mptcp-1:600 tcp0:300 tcp1:300]" || fmt.Sprint(windows) != "map[mptcp-1:3 tcp0:2 tcp1:2]" {
		t.Errorf("%v %v", packets, windows)
	}
}

func TestWindowEvents(t *testing.T) {
	k := newScript(t, 1)
	k.open(wifi, server, 100, 200)
	frame, size := frameOf(wifi, server, packet.ACK, 101, 201, 0, nil)
	k.sendFrame(frame, size, false)
	frame[34], frame[35] = 0, 0
	k.sendFrame(frame, size, false)
	frame[34] = 1
	k.sendFrame(frame, size, false)
	if got := names(k.end()); !slices.Equal(got, []string{"0:syn", "0:established", "0:zero-window", "0:window-open"}) {
		t.Error(got)
	}
}

func TestTablesThatNobodyWants(t *testing.T) {
	k := newScript(t, 1)
	k.sink = &tables.Sink{}
	k.engine = New(Options{}, k.sink, &k.warnings)
	k.tracker = newTracker(k.engine)
	k.openMPTCP()
	k.joinLTE()
	for i := range uint32(300) {
		k.down(wifi, 100*i, 100, uint64(100*i))
		k.down(lte, 100*i, 100, uint64(100*i))
	}
	r := k.end()
	if len(r.Connections)+len(r.Reinjections)+len(r.Events) != 0 || r.Warnings != (tables.Warnings{}) {
		t.Errorf("%+v", r)
	}
}
