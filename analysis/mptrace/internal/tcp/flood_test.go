package tcp

import (
	"runtime"
	"testing"
	"unsafe"

	"mplab/analysis/mptrace/packet"
)

// flood passes n packets with different 4-tuples to a tracker. It returns the
// live memory at the end and the number of ended flows.
func flood(n int, o Options, flags uint8) (held int64, ended int, tracker *Tracker) {
	o.OnEnd = func(*Flow) { ended++ }
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tracker = NewTracker(o)
	var seg Segment
	for i := range n {
		p := packet.Packet{
			TimeNS: 1e18 + int64(i)*100, Src: packet.Addr{Lo: 0xffff<<32 | uint64(i)}, Dst: packet.Addr{Lo: 0xffff0a000001},
			SrcPort: uint16(i * 7), DstPort: 80, Flags: flags, Seq: uint32(i) * 2654435761, Window: 1000,
		}
		tracker.Add(&p, &seg)
	}
	seg = Segment{}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(tracker)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc), ended, tracker
}

func TestFloodsTakeBoundedMemory(t *testing.T) {
	const (
		maxFlows = 1 << 14
		slots    = 4 * int64(unsafe.Sizeof(entry{})) // of the table, per flow
		light    = int64(unsafe.Sizeof(Flow{}))*5/4 + slots
		heavy    = int64(unsafe.Sizeof([2]stream{})) * 5 / 4
	)
	for _, c := range []struct {
		name  string
		n     int
		flags uint8
		bound int64
	}{
		{"SYN", 2e6, packet.SYN, maxFlows / openingShare * light},
		{"SYN/ACK", 2e5, packet.SYN | packet.ACK, maxFlows / openingShare * light},
		{"RST", 2e5, packet.RST, maxFlows * light},
		{"ACK", 2e5, packet.ACK, maxFlows / oneSidedShare * (light + heavy)},
	} {
		held, ended, tracker := flood(c.n, Options{MaxFlows: maxFlows}, c.flags)
		if held > c.bound {
			t.Errorf("%s: %d bytes held, at most %d allowed", c.name, held, c.bound)
		}
		if live := c.n - ended; live > maxFlows || tracker.table.used != live {
			t.Errorf("%s: %d flows live", c.name, live)
		}
		if wasClosed := c.flags&packet.RST != 0; (tracker.Evicted == 0) != wasClosed {
			t.Errorf("%s: %d evicted", c.name, tracker.Evicted)
		}
	}
}

func TestHalfOpenFlowsAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(Flow{}); size > 352 {
		t.Errorf("a flow has %d bytes", size)
	}
}

// TestWhoIsEndedEarly fills a tracker beyond its limit: flows without an answer
// are ended first, oldest first, and those with packets remain.
func TestWhoIsEndedEarly(t *testing.T) {
	var ended []uint16
	tracker := NewTracker(Options{MaxFlows: 8, OnEnd: func(f *Flow) { ended = append(ended, f.Ends[Up].Port) }})
	var seg Segment
	now := int64(1e18)
	send := func(port uint16, play func(*talk)) {
		k := newTalk()
		k.ends[Up].Port, k.now = port, now
		play(k)
		for i := range k.packets {
			tracker.Add(&k.packets[i], &seg)
		}
		now = k.now
	}
	established := func(k *talk) { k.open(); k.sendUp(10); k.ackUp() }
	half := func(k *talk) { k.send(Up, syn, -1, 0, 0) }
	for port := range uint16(6) {
		send(50000+port, established)
	}
	send(60000, half)
	send(60001, half)
	send(60002, half) // the 9th: the first half-open one is ended
	send(60003, half)
	send(50006, established)
	send(50007, established)
	send(50000, func(k *talk) { k.sendUp(20) })
	send(50008, established) // only active ones are left, and 50000 was active just now
	send(50009, established)
	want := []uint16{60000, 60001, 60002, 60003, 50001, 50002}
	if len(ended) != len(want) {
		t.Fatalf("ended: %v", ended)
	}
	for i := range want {
		if ended[i] != want[i] {
			t.Fatalf("ended: %v, want %v", ended, want)
		}
	}
	if tracker.Evicted != int64(len(want)) {
		t.Errorf("%d evicted", tracker.Evicted)
	}
}
