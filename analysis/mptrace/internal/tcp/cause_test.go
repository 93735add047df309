package tcp

import (
	"testing"

	"mplab/analysis/mptrace/packet"
)

// TestCauses plays a handshake over a path with a round trip of 20 ms, ten
// segments of 1000 bytes (0, 1000, …) acknowledged up to acked, and then the
// case. The last segment of the case is a retransmission.
func TestCauses(t *testing.T) {
	for _, c := range []struct {
		name  string
		acked int
		play  func(*talk)
		want  Cause
	}{
		{"third duplicate ACK", 2000, func(k *talk) { k.ack(2000); k.ack(2000); k.ack(2000); k.up(2000, 1000) }, Fast},
		{"two duplicate ACKs", 2000, func(k *talk) { k.ack(2000); k.ack(2000); k.up(2000, 1000) }, Fast},
		{"much SACK above", 2000, func(k *talk) { k.ack(2000, k.sack(3000, 7000)); k.up(2000, 1000) }, Fast},
		{"little SACK above", 2000, func(k *talk) { k.ack(2000, k.sack(3000, 4000)); k.wait(5 * ms); k.up(2000, 1000) }, Fast},
		{"second hole of a recovery", 2000, func(k *talk) {
			k.ack(2000, k.sack(3000, 4000, 6000, 9000))
			k.up(2000, 1000)
			k.up(4000, 1000)
		}, Recovery},
		{"after a partial acknowledgement", 2000, func(k *talk) {
			k.ack(2000)
			k.ack(2000)
			k.ack(2000)
			k.up(2000, 1000)
			k.wait(20 * ms)
			k.ack(5000)
			k.up(5000, 1000)
		}, Recovery},
		{"a new recovery", 2000, func(k *talk) {
			k.ack(2000, k.sack(3000, 9000))
			k.up(2000, 1000)
			k.wait(20 * ms)
			k.ack(10000)
			k.sendUp(1000)
			k.sendUp(1000)
			k.ack(10000, k.sack(11000, 12000))
			k.wait(5 * ms)
			k.up(10000, 1000)
		}, Fast},
		{"lost again in a recovery", 2000, func(k *talk) {
			k.ack(2000, k.sack(3000, 9000))
			k.up(2000, 1000)
			k.wait(300 * ms)
			k.up(2000, 1000)
		}, RTO},
		{"timer", 2000, func(k *talk) { k.wait(260 * ms); k.up(2000, 1000) }, RTO},
		{"second after a timeout", 2000, func(k *talk) {
			k.wait(260 * ms)
			k.up(2000, 1000)
			k.wait(20 * ms)
			k.ack(3000)
			k.up(3000, 1000)
		}, Recovery},
		{"timer again, doubled", 2000, func(k *talk) { k.wait(260 * ms); k.up(2000, 1000); k.wait(500 * ms); k.up(2000, 1000) }, RTO},
		{"timer long after a duplicate ACK", 2000, func(k *talk) { k.ack(2000); k.wait(400 * ms); k.up(2000, 1000) }, RTO},
		{"timer long after three duplicate ACKs", 2000, func(k *talk) {
			k.ack(2000)
			k.ack(2000)
			k.ack(2000)
			k.wait(400 * ms)
			k.up(2000, 1000)
		}, RTO},
		{"tail", 2000, func(k *talk) { k.wait(60 * ms); k.up(9000, 1000) }, TailProbe},
		{"tail, late, with others outstanding", 2000, func(k *talk) { k.wait(260 * ms); k.up(9000, 1000) }, TailProbe},
		{"tail alone, late", 9000, func(k *talk) { k.wait(260 * ms); k.up(9000, 1000) }, RTO},
		{"ACKs that are repeated to signal", 2000, func(k *talk) {
			for range 3 {
				k.ack(2000, func(p *packet.Packet) { p.Has |= packet.HasAddAddr })
			}
			k.up(2000, 1000)
		}, Unknown},
		{"in the middle at once", 2000, func(k *talk) { k.up(5000, 1000) }, Unknown},
		{"acknowledged", 2000, func(k *talk) { k.up(0, 1000) }, Unneeded},
		{"keep-alive", 10000, func(k *talk) { k.wait(1e9); k.up(9999, 1) }, Probe},
		{"window probe", 2000, func(k *talk) { k.ack(2000, window(0)); k.wait(300 * ms); k.up(2000, 1) }, Probe},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTalk()
			k.send(Up, syn, -1, 0, 0)
			k.wait(9 * ms)
			k.send(Down, synAck, -1, 0, 0)
			k.wait(8 * ms)
			k.send(Up, ack, 0, 0, 0)
			for range 10 {
				k.sendUp(1000)
			}
			k.wait(10 * ms)
			k.ack(c.acked)
			c.play(k)
			out := k.play(Options{})
			if last := out.segments[len(out.segments)-1]; last.Cause != c.want {
				t.Errorf("%v, want %v", last.Cause, c.want)
			}
			row, records := out.one(t).row(Up), int64(len(out.records))
			if row.RTO+row.Fast+row.Recovery+row.TailProbe+row.Probe+row.Unneeded+row.UnknownCause != records ||
				row.RetransmittedSegments+row.HoleSegments != records {
				t.Errorf("%d records, %+v", records, row)
			}
		})
	}
}

func TestProbesWithoutPayload(t *testing.T) {
	k := newTalk()
	k.open()
	k.sendUp(1000)
	k.ackUp()
	k.wait(1e9)
	k.send(Up, ack, 999, 0, 0)
	k.ackUp()
	out := k.play(Options{})
	row := out.one(t).row(Up)
	if row.Probe != 1 || row.RetransmittedSegments != 0 || len(out.records) != 0 {
		t.Errorf("%+v", row)
	}
}

func TestSpuriousRetransmissions(t *testing.T) {
	k := newTalk()
	k.open()
	for range 10 {
		k.sendUp(1000)
	}
	k.wait(300 * ms)
	k.up(0, 1000)
	k.up(1000, 1000)
	k.up(2000, 1000)
	k.ack(10000, k.sack(1000, 2000))       // the receiver had the data
	k.ack(10000, k.sack(0, 1000, 0, 2000)) // no DSACK above an acknowledgement, but below it everything is
	k.up(9000, 1000)                       // acknowledged
	k.ack(10000, k.sack(9000, 10000))      // counts once
	out := k.play(Options{})
	f := out.one(t)
	want := []bool{true, true, false, true}
	for i, r := range out.records {
		if r.Spurious != want[i] {
			t.Errorf("record %d: %v", i, r.Spurious)
		}
	}
	if up, down := f.row(Up), f.row(Down); len(out.records) != 4 || up.Spurious != 3 || down.DSACKs != 3 || down.SACKs != 3 {
		t.Errorf("%+v %+v", up, down)
	}
}

func TestEachDSACKIsAboutOneCopy(t *testing.T) {
	for copies, want := range [][]bool{{false, false}, {false, true}, {true, true}} {
		k := newTalk()
		k.open()
		k.sendUp(1000)
		k.wait(300 * ms)
		k.up(0, 1000)
		k.wait(600 * ms)
		k.up(0, 1000)
		for range copies {
			k.ack(1000, k.sack(0, 1000))
		}
		out := k.play(Options{})
		for i, r := range out.records {
			if r.Spurious != want[i] {
				t.Errorf("%d DSACKs: record %d: %v", copies, i, r.Spurious)
			}
		}
		if n := out.one(t).row(Up).Spurious; n != int64(copies) {
			t.Errorf("%d DSACKs, %d spurious", copies, n)
		}
	}
}

// TestPartsOfASuperSegment retransmits parts of a captured segment, as a sender
// does whose network card splits segments.
func TestPartsOfASuperSegment(t *testing.T) {
	k := newTalk()
	k.open()
	k.sendUp(4000)
	k.wait(300 * ms)
	k.up(1000, 1000)
	k.wait(20 * ms)
	k.up(2000, 1000)
	k.up(1000, 1000)
	k.ack(4000)
	out := k.play(Options{})
	want := []int64{301 * ms, 322 * ms, 22 * ms}
	for i, r := range out.records {
		if r.SinceLastNS != want[i] {
			t.Errorf("record %d: %d ms", i, r.SinceLastNS/ms)
		}
	}
	if row := out.one(t).row(Up); row.RTTSamples != 0 && row.RTTMinMS.Value < 324 {
		t.Errorf("%+v", row)
	}
}

func TestDSACKAboveTheAcknowledgement(t *testing.T) {
	k := newTalk()
	k.open()
	for range 10 {
		k.sendUp(1000)
	}
	k.ack(1000, k.sack(3000, 5000))
	k.up(3000, 1000)
	k.ack(1000, k.sack(3000, 4000, 3000, 5000))
	k.ack(1000, k.sack(6000, 7000, 3000, 5000))
	out := k.play(Options{})
	if row := out.one(t).row(Down); row.DSACKs != 1 || row.SACKs != 3 || len(out.records) != 1 || !out.records[0].Spurious {
		t.Errorf("%+v %+v", row, out.records)
	}
}

func TestRecordsComeBeforeTheEndOfTheirFlow(t *testing.T) {
	k := newTalk()
	k.open()
	k.sendUp(1000)
	const n = 3 * maxPending
	for range n {
		k.wait(300 * ms)
		k.up(0, 1000)
	}
	var told int
	var last int64
	tracker := NewTracker(Options{
		OnRetransmission: func(r *Retransmission) {
			told++
			if r.TimeNS < last {
				t.Error("out of order")
			}
			last = r.TimeNS
		},
		OnEnd: func(*Flow) {
			if told != n {
				t.Errorf("%d told, want %d", told, n)
			}
		},
	})
	var seg Segment
	for i := range k.packets {
		tracker.Add(&k.packets[i], &seg)
	}
	tracker.Close()
}
