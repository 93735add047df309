package ends

import (
	"testing"

	"mplab/analysis/mptrace/packet"
)

// multipath is a simulated connection with two subflows.
type multipath struct {
	subs [2]*talk
	t    int64
}

func newMultipath(n *network, delays [2]int64) *multipath {
	m := &multipath{}
	for path := range int32(2) {
		c := n.talk(path, 40_000+uint16(path), &wire{delay: delays[path]}, &wire{delay: delays[path]})
		c.key.dstPort = multipathPort
		m.t = max(m.t, c.open(n.start+int64(path)*msec))
		m.subs[path] = c
	}
	return m
}

// data sends [lo, hi) down on a subflow, after some ms.
func (m *multipath) data(after int64, sub int, lo, hi uint64, lost bool) {
	c := m.subs[sub]
	m.t += after * msec
	p := c.packet(Down, m.t, packet.ACK, c.seq[Down], c.seq[Up], uint32(hi-lo))
	p.DSN = lo
	p.Has |= packet.HasDSS
	c.seq[Down] += uint32(hi - lo)
	c.sendDown(m.t, p, lost)
}

func TestReinjectionsAndReorderingAreThoseOfTheNetwork(t *testing.T) {
	for _, sameClock := range []bool{true, false} {
		n := newNetwork(21)
		if !sameClock {
			n.offset = 4711 * msec
		}
		m := newMultipath(n, [2]int64{10 * msec, 50 * msec})
		begin := m.t
		m.data(10, 1, 0, 1000, false)     // at 10, arrives at 60
		m.data(5, 0, 1000, 2000, false)   // at 15, arrives at 25, waits 35
		m.data(5, 0, 0, 1000, false)      // at 20, arrives at 30: the copy is first, so the data waits only 5
		m.data(80, 1, 2000, 3000, true)   // at 100, never arrives
		m.data(30, 0, 2000, 3000, false)  // at 130, arrives at 140
		m.data(70, 0, 3000, 4000, false)  // at 200, arrives at 210
		m.data(1, 1, 3000, 4000, false)   // at 201, arrives at 251: too late
		m.data(99, 0, 4000, 5000, false)  // at 300, arrives at 310
		m.data(10, 1, 4000, 5000, true)   // at 310: the copy is lost
		m.data(90, 0, 5000, 6000, true)   // at 400
		m.data(10, 1, 5000, 6000, true)   // at 410: neither arrives …
		m.data(10, 0, 6000, 16000, false) // at 420, arrives at 430, waits
		m.data(80, 1, 5000, 6000, false)  // at 500: again on the same subflow, arrives at 550
		for _, c := range m.subs {
			c.after(m.t + 100*msec)
		}
		r := n.match(t, Options{SameClock: sameClock})
		type one struct {
			offset     int64
			from, to   int32
			first      int // 1: the copy arrived first, 0: the original, −1: neither arrived
			gain       float64
			both       bool
			sent       int64
			originalAt int64
		}
		want := []one{
			{0, 1, 0, 1, 30, true, 20, 60},
			{2000, 1, 0, 1, 0, false, 130, 0},
			{3000, 0, 1, 0, -41, true, 201, 210},
			{4000, 0, 1, 0, 0, false, 310, 310},
			{5000, 0, 1, 1, 0, false, 410, 0},
			{5000, 0, 1, 1, 0, false, 500, 0},
		}
		if len(r.Reinjections) != len(want) {
			t.Fatalf("%+v", r.Reinjections)
		}
		for i, w := range want {
			got := r.Reinjections[i]
			if got.Offset != w.offset || got.Bytes != 1000 || got.FromSubflow != w.from || got.ToSubflow != w.to || got.Direction != "down" ||
				!got.CopyFirst.Known || got.CopyFirst.Value != (w.first == 1) || got.GainMS.Known != w.both || got.GainMS.Value != w.gain {
				t.Errorf("%+v, truth %+v", got, w)
			}
			if sameClock && (got.TimeNS != begin+w.sent*msec || w.originalAt > 0 && got.OriginalNS.Value != begin+w.originalAt*msec) {
				t.Errorf("%+v, truth %+v", got, w)
			}
		}
		reordered(t, r)
	}
}

func reordered(t *testing.T, r *Result) {
	t.Helper()
	if len(r.Reordering) != 1 {
		t.Fatalf("%+v", r.Reordering)
	}
	row := r.Reordering[0]
	// [1000, 2000) waits from 25 to 30, [6000, 16000) from 430 to 550
	if row.Level != "mptcp" || row.Direction != "down" || row.Bytes != 16_000 || row.WaitedBytes != 11_000 || row.WaitingMax != 10_000 ||
		row.UnknownBytes != 0 || row.DelayMaxMS.Value != 120 || row.DelayP50MS.Value != 120 || row.DelayMeanMS.Value != (5*1000+120*10_000)/16_000. {
		t.Errorf("%+v", row)
	}
}
