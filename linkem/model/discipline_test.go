package model

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// flowPacket returns a UDP packet over IPv4 of the given size and flow number.
func flowPacket(bytes, flow int) *Frame {
	f := packet(bytes)
	ip := f.Data[VnetHeader+EthernetHeader:]
	ip[0], ip[9] = 0x45, protocolUDP
	binary.BigEndian.PutUint16(ip[20:], uint16(flow))
	return f
}

// flowOfPacket returns the flow number of a packet from flowPacket.
func flowOfPacket(f *Frame) int {
	return int(binary.BigEndian.Uint16(f.Data[VnetHeader+EthernetHeader+20:]))
}

func managedQueue(discipline string, packets int) Queue {
	return Queue{Packets: packets, Discipline: discipline}.WithDefaults()
}

// standing simulates a standing queue in which every packet has the same sojourn time, and pops one packet per ms. It
// returns the times of CoDel's drops, in ms.
func standing(law *codel, from, until int64, sojourn int64) (drops []int64) {
	queue := &dropTail{}
	for now := from; now < until; now++ {
		for queue.packets() < 50 {
			queue.push(packet(1500))
		}
		for i := range queue.queue.ring {
			if f := queue.queue.ring[i]; f != nil {
				f.arrival = (now - sojourn) * ms
			}
		}
		law.pop(now*ms, queue, func(*Frame) { drops = append(drops, now) })
	}
	return drops
}

func TestCodelDropsByItsControlLaw(t *testing.T) {
	law := &codel{target: 5 * ms, interval: 100 * ms}
	// RFC 8289 §3.3: the first drop after an interval above target, the next one interval/√n after the n-th.
	want := []int64{100}
	next := 100.0
	for n := 1; len(want) < 40; n++ {
		next += 100 / math.Sqrt(float64(n))
		want = append(want, int64(math.Ceil(next-1e-6)))
	}
	if got := standing(law, 0, want[39]+1, 20); !slices.Equal(got, want) {
		t.Errorf("drops at %v\n want %v", got, want)
	}
	// Below target it stops. Above target again soon afterwards, it continues at nearly the previous rate: it drops
	// earlier than an interval after the first.
	end := want[39] + 1
	if got := standing(law, end, end+50, 4); len(got) != 0 {
		t.Errorf("drops below target at %v", got)
	}
	again := standing(law, end+50, end+50+300, 20)
	if again[0] != end+150 || again[1]-again[0] > 20 {
		t.Errorf("drops again at %v, above target since %d", again, end+50)
	}
	// Much later, it starts from the beginning.
	late := end + 10_000
	standing(law, late-10, late, 4)
	if got := standing(law, late, late+250, 20); !slices.Equal(got, []int64{late + 100, late + 200}) {
		t.Errorf("drops at %v, above target since %d", got, late)
	}
}

func TestCodelLeavesAGoodQueueAlone(t *testing.T) {
	for _, c := range []struct {
		name    string
		packets int // sent at once, every 100 ms
		bytes   int
	}{
		// 40 packets of 1 ms: above target for 40 ms of every 100.
		{"bursts that drain", 40, 1000},
		// One packet of 12 ms at a time, and one that waits for it.
		{"a full packet that waits", 2, 1500},
	} {
		w := newWay(Params{RateKbps: 8000, Queue: managedQueue(Codel, 1000)}, 1)
		if c.packets == 2 {
			w = newWay(Params{RateKbps: 1000, Queue: managedQueue(Codel, 1000)}, 1)
		}
		for burst := range int64(30) {
			for range c.packets {
				w.Arrive(burst*100*ms, packet(c.bytes))
			}
		}
		w.run(10_000 * ms)
		if got := w.CountersAt(10_000 * ms); got.DroppedCodel != 0 || got.PacketsOut != uint64(30*c.packets) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestCodelHoldsTheDelayOfAResponsiveFlow has a sender that halves its window after a loss and otherwise adds one
// packet per round trip, as TCP does. With drop tail it fills the queue; with CoDel the delay stays near target.
func TestCodelHoldsTheDelayOfAResponsiveFlow(t *testing.T) {
	wait := map[string]float64{}
	for _, discipline := range []string{DropTail, Codel, FqCodel} {
		// 1000 bytes at 8 Mbit/s: 1 ms per packet; a round trip of 40 ms; a queue of 400 ms.
		w := newWay(Params{RateKbps: 8000, Queue: managedQueue(discipline, 400)}, 1)
		window, flight, cutAt, total, n := 10.0, 0, int64(-1), 0.0, 0
		due := map[int64]int{} // acknowledgements by ms
		lost := func() uint64 { c := w.CountersAt(0); return c.DroppedCodel + c.DroppedQueue }
		for now := int64(0); now < 60_000; now++ {
			for range due[now] {
				flight--
				window += 1 / window
			}
			before := lost()
			for flight < int(window) {
				flight++
				w.Arrive(now*ms, flowPacket(1000, 1))
			}
			w.left = nil
			w.run(now*ms + ms - 1)
			for _, d := range w.left {
				due[now+40]++
				if now > 20_000 {
					total += float64(d.at-d.frame.arrival) / 1e6
					n++
				}
			}
			if dropped := lost() - before; dropped > 0 {
				flight -= int(dropped)
				if now > cutAt+40 {
					window, cutAt = max(window/2, 1), now
				}
			}
		}
		wait[discipline] = total / float64(n)
		if n < 32_000 { // halving a window that barely fills the path costs some of the rate
			t.Errorf("%s: only %d packets of 40000 passed", discipline, n)
		}
	}
	if wait[Codel] > 20 || wait[FqCodel] > 20 || wait[DropTail] < 200 {
		t.Errorf("mean wait in ms: %v", wait)
	}
}

func TestFqCodelSharesTheRate(t *testing.T) {
	w := newWay(Params{RateKbps: 8000, Queue: managedQueue(FqCodel, 1000)}, 1)
	// Flow 1 sends ten times as many packets as flow 2, and flow 3 small ones: each flow gets the same number of bytes.
	for range 500 {
		w.Arrive(0, flowPacket(1000, 1))
	}
	for range 50 {
		w.Arrive(0, flowPacket(1000, 2))
		for range 4 {
			w.Arrive(0, flowPacket(250, 3))
		}
	}
	w.run(90 * ms)
	sent := map[int]int{}
	for _, d := range w.left {
		sent[flowOfPacket(d.frame)] += d.frame.Bytes
	}
	for flow := 1; flow <= 3; flow++ {
		if sent[flow] < 28_000 || sent[flow] > 32_000 {
			t.Errorf("bytes sent by flow: %v, want 30000 of each", sent)
		}
	}
}

func TestFqCodelLetsSparseFlowsGoFirst(t *testing.T) {
	w := newWay(Params{RateKbps: 8000, Queue: managedQueue(FqCodel, 1000)}, 1)
	for range 100 {
		w.Arrive(0, flowPacket(1000, 1))
		w.Arrive(0, flowPacket(1000, 2))
	}
	for now := 10 * ms; now < 100*ms; now += 10 * ms {
		w.Arrive(now, flowPacket(100, 3))
	}
	w.run(150 * ms)
	sparse := 0
	for _, d := range w.left {
		if flowOfPacket(d.frame) == 3 {
			sparse++
			// At most the packet in service and one round of each other flow.
			if wait := d.at - d.frame.arrival; wait > 5*ms {
				t.Errorf("a packet of a sparse flow took %d ns", wait)
			}
		}
	}
	if sparse != 9 {
		t.Errorf("%d of 9 packets of a sparse flow", sparse)
	}
}

func TestFqCodelDropsFromTheFattestFlow(t *testing.T) {
	w := newWay(Params{RateKbps: 8, Queue: managedQueue(FqCodel, 200)}, 1)
	var fat []*Frame
	for i := range 200 {
		fat = append(fat, flowPacket(1000, 1))
		w.Arrive(0, fat[i])
		if i == 100 {
			w.Arrive(0, flowPacket(100, 2))
		}
	}
	// The 201st packet exceeded the limit: 64 were dropped from the head; the first of all was already in service.
	c := w.CountersAt(0)
	if c.DroppedQueue != 64 || c.QueuePackets != 201-64 || w.service != fat[0] {
		t.Errorf("%+v", c)
	}
	w.run(1_500_000 * ms)
	if w.left[0].frame != fat[0] || w.left[1].frame != fat[65] {
		t.Error("it did not drop from the head of the flow")
	}
}

func TestFullFqCodelQueueOfOnePacketRefuses(t *testing.T) {
	w := newWay(Params{RateKbps: 8, Queue: managedQueue(FqCodel, 1)}, 1)
	for i := range 5 {
		w.Arrive(0, flowPacket(1000, i))
	}
	if c := w.CountersAt(0); c.QueuePackets != 1 || c.DroppedQueue != 4 || w.heldBytes != cap(packet(0).Data) {
		t.Errorf("%+v, %d bytes held", c, w.heldBytes)
	}
}

func TestChangeOfDisciplineKeepsWhatWaits(t *testing.T) {
	for _, from := range []string{DropTail, Codel, FqCodel} {
		for _, to := range []string{DropTail, Codel, FqCodel} {
			w := newWay(Params{RateKbps: 8000, Queue: managedQueue(from, 100)}, 1)
			for i := range 60 {
				w.Arrive(0, flowPacket(1000, i%3))
			}
			w.run(ms)
			w.Change(ms, Params{RateKbps: 8000, Queue: managedQueue(to, 10)}, NewChance(1, "test", "up"))
			if c := w.CountersAt(ms); c.QueuePackets != 59 {
				t.Errorf("%s to %s: %+v", from, to, c)
			}
			w.run(59 * ms)
			if c := w.CountersAt(59 * ms); c.PacketsOut != 59 || c.DroppedQueue+c.DroppedCodel != 0 {
				t.Errorf("%s to %s: %+v", from, to, c)
			}
			next := map[int]uint64{}
			for _, d := range w.left {
				flow := flowOfPacket(d.frame)
				if d.frame.order < next[flow] {
					t.Fatalf("%s to %s: flow %d was reordered", from, to, flow)
				}
				next[flow] = d.frame.order
			}
		}
	}
}

func TestFlowsAreToldApart(t *testing.T) {
	ipv6 := packet(100)
	ip := ipv6.Data[VnetHeader+EthernetHeader:]
	ip[0], ip[6] = 0x60, protocolTCP
	otherPort := func(f *Frame, at int) *Frame {
		g := packet(100)
		copy(g.Data, f.Data)
		g.Data[VnetHeader+EthernetHeader+at]++
		return g
	}
	// An IPv6 packet needs more than the 64 bytes of a test frame to have ports.
	ipv6.Data = append(ipv6.Data, make([]byte, 20)...)
	longer := otherPort(ipv6, 23) // last byte of the source address
	if flowOf(ipv6) == flowOf(longer) {
		t.Error("other addresses, but the same flow")
	}
	plain := flowPacket(100, 7)
	if flowOf(plain) != flowOf(flowPacket(1400, 7)) || flowOf(plain) == flowOf(flowPacket(100, 8)) {
		t.Error("a flow is not told by its ports")
	}
	fragment, other := otherPort(plain, 6), otherPort(flowPacket(100, 8), 6)
	if flowOf(fragment) != flowOf(other) {
		t.Error("fragments have no ports")
	}
	for n := range len(plain.Data) { // truncated anywhere
		cut := &Frame{Data: plain.Data[:n], ip: true}
		flowOf(cut)
		cut.Data = ipv6.Data[:n]
		flowOf(cut)
	}
}
