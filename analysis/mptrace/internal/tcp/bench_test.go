package tcp

import (
	"testing"

	"mplab/analysis/mptrace/packet"
)

// play passes packets to a tracker repeatedly, each time later and as new
// connections.
func play(b *testing.B, packets []packet.Packet) {
	var seg Segment
	t := NewTracker(Options{})
	later := packets[len(packets)-1].TimeNS - packets[0].TimeNS + 120e9
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for i := range packets {
			t.Add(&packets[i], &seg)
			packets[i].TimeNS += later
		}
		n += len(packets)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/packet")
}

// BenchmarkBulk is an endless connection. The packets are few enough to stay in
// the cache, as batches do.
func BenchmarkBulk(b *testing.B) {
	k := newTalk()
	k.open()
	opening := len(k.packets)
	for range 1000 {
		k.sendUp(1448, withTimestamps)
		k.sendUp(1448, withTimestamps)
		k.ackUp(withTimestamps)
	}
	var seg Segment
	t := NewTracker(Options{})
	for i := range opening {
		t.Add(&k.packets[i], &seg)
	}
	packets, sent := k.packets[opening:], uint32(k.next[Up])
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range packets {
			p := &packets[i]
			t.Add(p, &seg)
			p.TimeNS += 3000 * ms
			if seg.Dir == Up {
				p.Seq += sent
			} else {
				p.Ack += sent
			}
		}
		n += len(packets)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/packet")
}

func BenchmarkShort(b *testing.B) {
	var all []packet.Packet
	for i := range 4500 {
		k := newTalk()
		k.now += int64(i) * 1e5
		k.ends[Up].Port += uint16(i)
		k.open()
		k.sendUp(300, withTimestamps)
		k.ackUp(withTimestamps)
		for range 4 {
			k.sendDown(1448, withTimestamps)
			k.sendDown(1448, withTimestamps)
			k.ackDown(withTimestamps)
		}
		k.close()
		all = append(all, k.packets...)
	}
	play(b, all)
}

func BenchmarkLossy(b *testing.B) {
	k := newTalk()
	k.open()
	const window = 40
	for range 200 {
		k.lossyRound(window)
	}
	play(b, k.packets)
}
