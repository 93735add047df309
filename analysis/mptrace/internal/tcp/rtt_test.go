package tcp

import (
	"slices"
	"testing"
)

func TestRoundTrips(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(*talk)
		want []int64 // ms
	}{
		{"one segment", func(k *talk) { k.sendUp(100); k.wait(9 * ms); k.ackUp() }, []int64{10}},
		{"the last one of two", func(k *talk) { k.sendUp(100); k.sendUp(100); k.ackUp() }, []int64{1}},
		{"part of a segment", func(k *talk) { k.sendUp(100); k.ack(50); k.ack(100) }, []int64{2}},
		{"FIN alone", func(k *talk) { k.close() }, nil},
		{"data with FIN", func(k *talk) { k.send(Up, fin, 0, 0, 100); k.send(Down, ack, 0, 101, 0) }, []int64{1}},
		{"sent again, no timestamps", func(k *talk) { k.up(0, 100); k.wait(300 * ms); k.up(0, 100); k.ackUp() }, nil},
		{"sent again, the first is echoed", func(k *talk) {
			k.up(0, 100, stamps(7, 1))
			k.wait(300 * ms)
			k.up(0, 100, stamps(8, 1))
			k.ackUp(stamps(1, 7))
		}, []int64{302}},
		{"sent again, the second is echoed", func(k *talk) {
			k.up(0, 100, stamps(7, 1))
			k.wait(300 * ms)
			k.up(0, 100, stamps(8, 1))
			k.ackUp(stamps(1, 8))
		}, []int64{1}},
		{"sent again with the same timestamp", func(k *talk) {
			k.up(0, 100, stamps(7, 1))
			k.wait(300 * ms)
			k.up(0, 100, stamps(7, 1))
			k.ackUp(stamps(1, 7))
		}, nil},
		{"what waited for a hole", func(k *talk) {
			k.up(100, 100)
			k.ack(0)
			k.wait(300 * ms)
			k.up(0, 100)
			k.ack(200)
		}, nil},
		{"the hole itself, by its timestamp", func(k *talk) {
			k.up(100, 100, stamps(7, 1))
			k.ack(0, stamps(1, 0))
			k.wait(300 * ms)
			k.up(0, 100, stamps(8, 1))
			k.ack(200, stamps(1, 8))
		}, []int64{1}},
		{"what waited for a hole that the capture missed", func(k *talk) {
			k.sendUp(100)
			k.sendUp(100)
			k.ack(0)
			k.ack(0, k.sack(100, 200))
			k.wait(300 * ms)
			k.ack(200)
		}, nil},
		{"after all was repaired", func(k *talk) {
			k.up(0, 100)
			k.wait(300 * ms)
			k.up(0, 100)
			k.ackUp()
			k.sendUp(100)
			k.ackUp()
		}, []int64{1}},
		{"before the capture began", func(k *talk) { k.packets = nil; k.up(500, 100); k.ackUp() }, []int64{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTalk()
			k.open()
			c.play(k)
			var got []int64
			for _, s := range k.play(Options{Samples: -1}).one(t).RTT(Up).Kept() {
				got = append(got, s.Value/ms)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestSamplesAreThinned(t *testing.T) {
	k := newTalk()
	k.open()
	const n = 1000
	for i := range n {
		k.sendUp(100)
		k.wait(int64(i%10) * ms)
		k.ackUp()
	}
	for _, c := range []struct{ limit, least, most int }{{100, 100, 200}, {-1, n, n}, {0, n, n}} {
		f := k.play(Options{Samples: c.limit}).one(t)
		samples, weight := f.RTT(Up).Kept(), 0
		for i := range samples {
			weight += int(f.RTT(Up).Weight(i))
		}
		if len(samples) < c.least || len(samples) > c.most || weight != n {
			t.Errorf("limit %d: %d samples of weight %d", c.limit, len(samples), weight)
		}
		row := f.row(Up)
		if row.RTTSamples != n || row.RTTMinMS.Value != 1 || row.RTTMaxMS.Value != 10 || row.RTTMeanMS.Value != 5.5 ||
			row.RTTP50MS.Value < 5*.992 || row.RTTP50MS.Value > 6*1.008 {
			t.Errorf("limit %d: %+v", c.limit, row)
		}
	}
}

func TestManySegmentsInFlight(t *testing.T) {
	k := newTalk()
	k.open()
	k.sendUp(10)
	k.ackUp()
	for range 3 * maxRing {
		k.sendUp(10)
	}
	k.ackUp()
	f := k.play(Options{}).one(t)
	row := f.row(Up)
	if row.RTTSamples != 2 || row.RTTMaxMS.Value != 1 || row.FlightMax != 30*maxRing {
		t.Errorf("%+v", row)
	}
}
