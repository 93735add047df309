package tcp

import (
	"slices"
	"testing"

	"mplab/analysis/mptrace/packet"
)

func TestCounters(t *testing.T) {
	k := newTalk()
	k.send(Up, syn, -1, 0, 0, mss(1460), scale(7), withTimestamps, func(p *packet.Packet) { p.Has |= packet.HasSACKPermitted })
	k.send(Down, synAck, -1, 0, 0, mss(1400), scale(2), withTimestamps)
	k.send(Up, ack, 0, 0, 0, window(100))
	k.send(Up, ack|packet.PSH, 0, 0, 3000, window(200), withTimestamps)
	k.next[Up] = 3000
	k.wait(99 * ms)
	k.ackUp(window(0))
	k.sendUp(100, window(300))
	k.ackUp(func(p *packet.Packet) { p.TTL = 50 })
	k.close()
	f := k.play(Options{}).one(t)
	up, down := f.row(Up), f.row(Down)
	if up.Segments != 6 || up.DataSegments != 2 || up.WireSegments != 4 || up.PureACKs != 2 || up.SYNs != 1 || up.FINs != 1 || up.Pushes != 1 ||
		up.Bytes != 3100 || up.UniqueBytes != 3100 || up.SegmentMax != 3000 || up.SegmentMin != 100 || up.MissingBytes != 0 ||
		up.MSS.Value != 1460 || up.WindowScale.Value != 7 || !up.SACKPermitted || !up.Timestamps {
		t.Errorf("%+v", up)
	}
	if up.WindowMin.Value != 100<<7 || up.WindowMax.Value != 500<<7 || up.WindowMean.Value != (100+200+300+500+500)<<7/5. ||
		down.WindowMin.Value != 0 || down.ZeroWindows != 1 {
		t.Errorf("windows: %+v %+v", up, down)
	}
	if up.FlightMax != 3000 || up.FlightMean.Value != 1550 || up.InitialWindow != 3000 || down.InitialWindow != 0 {
		t.Errorf("flight: %+v", up)
	}
	first := k.packets[3].TimeNS
	if up.FirstNS.Value != k.packets[0].TimeNS || up.FirstPayloadNS.Value != first || up.LastPayloadNS.Value != first+101*ms ||
		up.FirstACKNS.Value != first+100*ms || up.LastACKNS.Value != first+102*ms || up.FINACKNS.Value != first+104*ms || up.IdleMaxMS != 101 {
		t.Errorf("times: %+v", up)
	}
	if up.TTLMin != 64 || down.TTLMin != 50 || down.TTLMax != 64 || down.FirstPayloadNS.Known || down.ThroughputB.Known {
		t.Errorf("%+v", down)
	}
	if down.SACKPermitted || !down.Timestamps || down.MSS.Value != 1400 {
		t.Errorf("%+v", down)
	}
}

func TestSuperSegmentsAreDividedByWhatFits(t *testing.T) {
	k := newTalk()
	k.open(mss(1460))
	k.sendUp(46*1428, func(p *packet.Packet) { p.Options = make([]byte, 32) })
	k.sendUp(1428)
	k.sendUp(1461)
	if row := k.play(Options{}).one(t).row(Up); row.WireSegments != 46+1+2 || row.DataSegments != 3 {
		t.Errorf("%+v", row)
	}
}

func TestWindowsNeedBothSYNs(t *testing.T) {
	for _, c := range []struct {
		name  string
		play  func(*talk)
		known bool
		max   int64
		seg   uint32
	}{
		{"both scale", func(k *talk) { k.open(scale(3)); k.sendUp(1) }, true, 4000, 4000},
		{"none scales", func(k *talk) { k.open(); k.sendUp(1) }, true, 500, 500},
		{"one scales", func(k *talk) {
			k.send(Up, syn, -1, 0, 0, scale(3))
			k.send(Down, synAck, -1, 0, 0)
			k.sendUp(1)
		}, true, 500, 500},
		{"one SYN is missing", func(k *talk) {
			k.send(Down, synAck, -1, 0, 0, scale(3))
			k.sendUp(1)
		}, false, 0, 500},
		{"options are cut", func(k *talk) { k.open(quirk(packet.OptionsCut)); k.sendUp(1) }, false, 0, 500},
	} {
		k := newTalk()
		c.play(k)
		out := k.play(Options{})
		row := out.one(t).row(Up)
		if last := out.segments[len(out.segments)-1]; row.WindowMax.Known != c.known || row.WindowMax.Value != c.max || last.Window != c.seg {
			t.Errorf("%s: %+v, %d", c.name, row.WindowMax, last.Window)
		}
	}
}

func TestFreshPartsAreTold(t *testing.T) {
	k := newTalk()
	k.open()
	k.up(0, 100)
	k.up(200, 100)
	k.up(50, 300) // [100, 200) and [300, 350) are new
	k.up(0, 100)
	out := k.play(Options{})
	f := out.one(t)
	isn := out.segments[0].Lo - 1
	some, none := out.segments[5], out.segments[6]
	if some.Fresh != Some || len(some.Gaps) != 2 || some.Gaps[0].Lo != isn+101 || some.Gaps[0].Hi != isn+201 ||
		some.Gaps[1].Lo != isn+301 || some.Gaps[1].Hi != isn+351 {
		t.Errorf("%+v", some)
	}
	row := f.row(Up)
	if none.Fresh != None || row.Bytes != 600 || row.UniqueBytes != 350 || row.RetransmittedBytes != 250 || row.RetransmittedSegments != 2 {
		t.Errorf("%+v", row)
	}
}

func TestRetransmissionsSeenTwiceAndHoles(t *testing.T) {
	k := newTalk()
	k.open()
	k.up(0, 100)
	k.up(200, 100) // [100, 200) is missing
	k.ack(100)
	k.ack(100)
	k.wait(300 * ms)
	k.up(100, 100) // the hole
	k.up(0, 100)   // seen before
	out := k.play(Options{})
	row := out.one(t).row(Up)
	if row.HoleSegments != 1 || row.HoleBytes != 100 || row.RetransmittedSegments != 1 || row.RetransmittedBytes != 100 || row.MissingBytes != 0 || row.ReorderedSegments != 0 {
		t.Errorf("%+v", row)
	}
	if s := out.segments[7]; !s.Hole || s.Fresh != All || s.Cause == NotRetransmitted {
		t.Errorf("%+v", s)
	}
	if len(out.records) != 2 {
		t.Fatalf("%d records", len(out.records))
	}
	filled, twice := out.records[0], out.records[1]
	if !filled.Hole || filled.Seq-filled.Start != 100 || filled.Bytes != 100 || filled.SinceFirstNS != -1 || filled.SinceSegmentNS != 303*ms {
		t.Errorf("%+v", filled)
	}
	if twice.Hole || twice.Seq != twice.Start || twice.SinceFirstNS != 305*ms || twice.SinceLastNS != 305*ms || twice.SinceSegmentNS != 1*ms {
		t.Errorf("%+v", twice)
	}
}

func TestOvertakenIsNotLost(t *testing.T) {
	for _, c := range []struct {
		name      string
		play      func(*talk)
		reordered bool
	}{
		{"at once", func(k *talk) { k.up(200, 100, ident(0)); k.up(100, 100, ident(0)) }, true},
		{"after duplicate ACKs and half a round trip", func(k *talk) {
			k.up(200, 100, ident(0))
			k.ack(100)
			k.ack(100)
			k.up(100, 100, ident(0))
		}, false},
		{"after a round trip", func(k *talk) {
			k.up(200, 100, ident(0))
			k.wait(50 * ms)
			k.up(100, 100, ident(0))
		}, false},
		{"late, but with a number between its neighbours", func(k *talk) {
			k.up(200, 100, ident(105))
			k.wait(50 * ms)
			k.up(100, 100, ident(104))
		}, true},
		{"at once, with a number above both", func(k *talk) { k.up(200, 100, ident(105)); k.up(100, 100, ident(106)) }, false},
	} {
		k := newTalk()
		k.send(Up, syn, -1, 0, 0)
		k.wait(10 * ms)
		k.send(Down, synAck, -1, 0, 0)
		k.wait(10 * ms)
		k.send(Up, ack, 0, 0, 0)
		k.up(0, 100, ident(103))
		c.play(k)
		out := k.play(Options{})
		row, last := out.one(t).row(Up), out.segments[len(out.segments)-1]
		if last.Reordered != c.reordered || last.Hole == c.reordered || (row.ReorderedSegments == 1) != c.reordered ||
			(row.HoleSegments == 0) != c.reordered || (last.Cause == NotRetransmitted) != c.reordered {
			t.Errorf("%s: %+v", c.name, last)
		}
	}
}

func TestCopiesOfTheCaptureCountNowhere(t *testing.T) {
	twice := func(changes ...change) func(*talk) {
		return func(k *talk) {
			for i, p := range k.packets[len(k.packets)-1:] {
				p.TimeNS += int64(i) + 1000
				for _, c := range changes {
					c(&p)
				}
				k.packets = append(k.packets, p)
			}
		}
	}
	data := func(c ...change) func(*talk) { return func(k *talk) { k.open(); k.sendUp(100, c...) } }
	for _, c := range []struct {
		name  string
		first func(*talk)
		again func(*talk)
		copy  bool
	}{
		{"payload", data(), twice(), true},
		{"acknowledgement", func(k *talk) { k.open(); k.sendUp(100); k.ackUp() }, twice(), true},
		{"SYN", func(k *talk) { k.send(Up, syn, -1, 0, 0) }, twice(), true},
		{"FIN", func(k *talk) { k.open(); k.send(Up, fin, 0, 0, 0) }, twice(), true},
		{"RST", func(k *talk) { k.open(); k.send(Up, rst, 0, 0, 0) }, twice(), true},
		{"another identification", data(), twice(ident(7)), false},
		{"another checksum", data(), twice(func(p *packet.Packet) { p.Checksum++ }), false},
		{"checksum left to the network card", data(func(p *packet.Packet) { p.Checksum = pseudoSum(p) }),
			twice(func(p *packet.Packet) { p.Checksum++ }), true},
		{"much later", data(), twice(func(p *packet.Packet) { p.TimeNS += 50 * ms }), false},
		{"payload without identification", data(ident(0)), twice(), false},
		{"payload without identification, in a capture of packets twice", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.packets = append(k.packets, k.packets[0])
			k.send(Down, synAck, -1, 0, 0)
			k.sendUp(100, ident(0))
		}, twice(), true},
		{"payload without identification, of a SYN that was not seen", func(k *talk) { k.sendUp(100, ident(0)) }, twice(), true},
		{"payload without identification, later", data(ident(0)), twice(func(p *packet.Packet) { p.TimeNS += 3 * ms }), false},
		{"acknowledgement without identification", func(k *talk) { k.open(); k.sendUp(100); k.ackUp(ident(0)) }, twice(), false},
		{"payload of IPv6, sent again within a millisecond", data(quirk(packet.IPv6), ident(0)), twice(), false},
		{"payload of IPv6, in a capture of packets twice", func(k *talk) {
			k.open(quirk(packet.IPv6), ident(0))
			k.packets = slices.Insert(k.packets, 1, k.packets[0])
			k.sendUp(100, quirk(packet.IPv6), ident(0))
		}, twice(), true},
		{"other timestamps", data(stamps(1, 2)), twice(func(p *packet.Packet) { p.TSVal++ }), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTalk()
			c.first(k)
			before := k.play(Options{}).one(t)
			c.again(k)
			out := k.play(Options{})
			after := out.one(t)
			if out.segments[len(out.segments)-1].Duplicate != c.copy || (after.subflow().Duplicates > before.subflow().Duplicates) != c.copy {
				t.Errorf("%+v", out.segments[len(out.segments)-1])
			}
			same := before.row(Up) == after.row(Up) && before.row(Down) == after.row(Down)
			if same != c.copy {
				t.Errorf("rows are the same: %v", same)
			}
		})
	}
}

func TestDamagedNumbersDoLittleHarm(t *testing.T) {
	k := newTalk()
	k.open()
	for i := range 20 {
		k.sendUp(1000)
		k.ackUp()
		switch i {
		case 5:
			k.send(Up, ack, 1<<30, 0, 500)
		case 8:
			k.send(Up, ack, -1<<30, 0, 500)
		case 11:
			k.send(Down, ack, 0, 1<<29, 0)
		case 14:
			k.send(Down, ack, 0, -1<<29, 0)
		case 17:
			k.send(Up, fin, 1<<30, 0, 0)
		}
	}
	out := k.play(Options{})
	row := out.one(t).row(Up)
	if row.MissingBytes != 0 || row.FlightMax != 1000 || row.Bytes != 21000 || row.UniqueBytes != 20500 || row.RetransmittedBytes != 500 || row.RTTSamples != 20 {
		t.Errorf("%+v", row)
	}
	var acked int
	for _, s := range out.segments {
		acked += int(s.Acked)
	}
	if acked != 20000 {
		t.Errorf("%d bytes acknowledged", acked)
	}
}

func TestACaptureThatMissedALot(t *testing.T) {
	k := newTalk()
	k.open()
	k.sendUp(1000)
	k.next[Up] += 1 << 28
	k.sendUp(1000)
	k.sendUp(1000)
	k.ackUp()
	k.sendUp(1000)
	k.ackUp()
	row := k.play(Options{}).one(t).row(Up)
	if row.UniqueBytes != 4000 || row.MissingBytes != 1<<28 || row.RetransmittedBytes != 0 || row.RTTSamples != 2 {
		t.Errorf("%+v", row)
	}
}

func TestKeepAliveBeforeTheFirstPayload(t *testing.T) {
	k := newTalk()
	k.send(Up, ack, 499, 0, 0) // of a connection that started before the capture
	k.up(500, 100)
	row := k.play(Options{}).one(t).row(Up)
	if row.MissingBytes != 0 || row.HoleSegments != 0 || row.UniqueBytes != 100 {
		t.Errorf("%+v", row)
	}
	k = newTalk()
	k.open()
	k.up(-1, 1) // one byte of garbage below the first
	k.up(0, 100)
	row = k.play(Options{}).one(t).row(Up)
	if row.UniqueBytes != 100 || row.RetransmittedBytes != 1 || row.MissingBytes != 0 || row.Probe != 1 {
		t.Errorf("%+v", row)
	}
}

func TestAcknowledgedBytes(t *testing.T) {
	k := newTalk()
	k.open()
	k.sendUp(1000)
	k.sendUp(1000)
	k.ack(500)
	k.ack(2000)
	k.ack(2000)
	k.ack(1000)
	k.close()
	out := k.play(Options{})
	want := []uint32{0, 0, 0, 0, 0, 500, 1500, 0, 0, 0, 0, 0}
	for i, s := range out.segments {
		if s.Acked != want[i] {
			t.Errorf("segment %d: %d, want %d", i, s.Acked, want[i])
		}
	}
	f := out.one(t)
	var got []int64
	f.ACKSizes(Up).Each(func(bytes, count int64) { got = append(got, bytes, count) })
	if len(got) != 4 || got[0] != 500 || got[1] != 1 || got[2] != 1500 || got[3] != 1 {
		t.Errorf("%v", got)
	}
	if down := f.row(Down); down.DuplicateACKs != 0 {
		t.Errorf("%d duplicate ACKs though all was acknowledged", down.DuplicateACKs)
	}
}

func TestDuplicateACKs(t *testing.T) {
	k := newTalk()
	k.open()
	k.sendUp(1000)
	k.sendUp(1000)
	k.ack(1000)
	k.ack(1000)              // one
	k.ack(1000, window(501)) // window update
	k.ack(1000, window(501)) // two
	k.sendDown(10)           // has payload
	k.ack(2000)
	k.ack(2000) // nothing is unacknowledged
	if got := k.play(Options{}).one(t).row(Down).DuplicateACKs; got != 2 {
		t.Errorf("%d, want 2", got)
	}
}
