package model

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

const ms = int64(1e6) // in ns

// way is a direction with the packets that passed it.
type way struct {
	*Direction
	left []departure
}

type departure struct {
	at    int64
	frame *Frame // which the pool may reuse
	order uint64
	flow  int
}

func newWay(params Params, seed uint64) *way {
	return &way{Direction: NewDirection(params.WithDefaults(), NewPrefixDelays(nil), NewChance(seed, "test", "up"))}
}

// packet returns an IP packet of the given size.
func packet(bytes int) *Frame { return &Frame{Data: make([]byte, 64), Bytes: bytes, ip: true} }

// run removes everything that departs up to the given time, at its departure time.
func (w *way) run(until int64) {
	for {
		next, some := w.Next()
		if !some || next > until {
			return
		}
		for f := w.Due(next); f != nil; f = w.Due(next) {
			w.left = append(w.left, departure{next, f, f.order, flowOfPacket(f)})
			w.Sent(f)
		}
	}
}

func (w *way) times() []int64 {
	times := []int64{}
	for _, d := range w.left {
		times = append(times, d.at)
	}
	return times
}

func TestSerialisationAndDelay(t *testing.T) {
	// 1000 bytes at 8 Mbit/s take 1 ms.
	w := newWay(Params{RateKbps: 8000, DelayMs: 10}, 1)
	for _, at := range []int64{0, 0, 0, 20 * ms} {
		w.Arrive(at, packet(1000))
	}
	w.run(100 * ms)
	if want := []int64{11 * ms, 12 * ms, 13 * ms, 31 * ms}; !slices.Equal(w.times(), want) {
		t.Errorf("departures %v, want %v", w.times(), want)
	}
}

func TestLatePacketsAreCountedWithTheirLateness(t *testing.T) {
	w := newWay(Params{DelayMs: 10}, 1)
	at := int64(0)
	for _, late := range []int64{0, ms, 3 * ms, 7 * ms} { // 1 ms is not yet late
		w.Arrive(at, packet(100))
		if f := w.Due(at + 10*ms + late); f == nil {
			t.Fatal("the packet did not leave")
		} else {
			w.Sent(f)
		}
		at += 100 * ms
	}
	if c := w.CountersAt(at); c.LatePackets != 2 || c.LateMicros != 10_000 || c.LatestMs != 7 {
		t.Errorf("%d late packets by %d µs in all, at most %v ms", c.LatePackets, c.LateMicros, c.LatestMs)
	}
}

func TestUnlimitedOnlyDelays(t *testing.T) {
	w := newWay(Params{DelayMs: 5, Queue: Queue{Packets: 1}}, 1)
	for range 10 {
		if !w.Arrive(ms, packet(1500)) {
			t.Error("a packet was dropped")
		}
	}
	w.run(6 * ms)
	if len(w.left) != 10 || w.left[9].at != 6*ms {
		t.Errorf("departures %v", w.times())
	}
}

func TestDropTail(t *testing.T) {
	for _, c := range []struct {
		name  string
		queue Queue
		kept  int
	}{{"packets", Queue{Packets: 3}, 3}, {"bytes", Queue{Bytes: 4500}, 4}, {"default", Queue{}, 150}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWay(Params{RateKbps: 8000, Queue: c.queue}, 1)
			for range 200 {
				w.Arrive(0, packet(1000))
			}
			counters := w.CountersAt(0)
			if counters.QueuePackets != c.kept || counters.DroppedQueue != uint64(200-c.kept) {
				t.Errorf("%+v", counters)
			}
			// Half of the first packet is serialised: it still counts. After all of it, there is room for one.
			if w.Arrive(ms/2, packet(1000)) || !w.Arrive(ms, packet(1000)) || w.Arrive(ms, packet(1000)) {
				t.Error("occupancy does not count what is not fully serialised")
			}
		})
	}
}

func TestChangeOfRateKeepsWhatIsQueued(t *testing.T) {
	w := newWay(Params{RateKbps: 8000}, 1)
	for range 4 {
		w.Arrive(0, packet(1000))
	}
	// At 1.5 ms one packet has left and half of the second is serialised. At a quarter of the rate, the rest takes 2
	// ms, then 4 ms each.
	w.run(3 * ms / 2)
	w.Change(3*ms/2, Params{RateKbps: 2000, Queue: Queue{Packets: 1}}, NewChance(1, "test", "up"))
	w.run(100 * ms)
	if want := []int64{ms, 7 * ms / 2, 15 * ms / 2, 23 * ms / 2}; !slices.Equal(w.times(), want) {
		t.Errorf("departures %v, want %v", w.times(), want)
	}
}

func TestChangeToUnlimitedSendsTheQueue(t *testing.T) {
	w := newWay(Params{RateKbps: 8}, 1)
	for range 4 {
		w.Arrive(0, packet(1000))
	}
	w.Change(5*ms, Params{DelayMs: 1}, NewChance(1, "test", "up"))
	w.run(6 * ms)
	if c := w.CountersAt(6 * ms); c.PacketsOut != 4 || c.QueueBytes != 0 {
		t.Errorf("%+v", c)
	}
}

func TestSmallerDelayDoesNotReorder(t *testing.T) {
	w := newWay(Params{DelayMs: 100}, 1)
	first, second := packet(100), packet(100)
	w.Arrive(0, first)
	w.Change(ms, Params{}, NewChance(1, "test", "up"))
	w.Arrive(2*ms, second)
	w.run(200 * ms)
	if w.left[0].frame != first || w.left[1].frame != second || w.left[1].at != 100*ms {
		t.Errorf("departures %v", w.times())
	}
}

func TestJitterStaysInBoundsAndNeverReorders(t *testing.T) {
	w := newWay(Params{DelayMs: 20, JitterMs: 8}, 3)
	var order []*Frame
	for i := range 2000 {
		f := packet(100)
		order = append(order, f)
		w.Arrive(int64(i)*ms, f)
	}
	w.run(10_000 * ms)
	smallest, largest := int64(1)<<62, int64(0)
	for i, d := range w.left {
		if d.frame != order[i] {
			t.Fatalf("packet %d was reordered", i)
		}
		way := d.at - int64(i)*ms
		smallest, largest = min(smallest, way), max(largest, way)
	}
	if smallest < 12*ms || largest > 28*ms || largest-smallest < 8*ms {
		t.Errorf("delays from %d to %d ns, want 20 ms ± 8", smallest, largest)
	}
}

func losses(seed uint64, percent float64, n int) []bool {
	w := newWay(Params{LossPercent: percent}, seed)
	fates := make([]bool, n)
	for i := range fates {
		fates[i] = !w.Arrive(int64(i), packet(100))
		w.run(int64(i))
	}
	return fates
}

func TestLossIsDeterministic(t *testing.T) {
	const n = 20_000
	a, b, other := losses(7, 5, n), losses(7, 5, n), losses(8, 5, n)
	if !slices.Equal(a, b) {
		t.Error("the same seed gave different losses")
	}
	if slices.Equal(a, other) {
		t.Error("different seeds gave the same losses")
	}
	lost, more := 0, losses(7, 10, n)
	for i := range a {
		if a[i] {
			lost++
			if !more[i] {
				t.Fatal("a packet lost at 5 % is not lost at 10 %")
			}
		}
	}
	if share := float64(lost) / n; share < 0.04 || share > 0.06 {
		t.Errorf("%.3f lost, want 0.05", share)
	}
	if slices.Contains(losses(7, 0, n), true) || slices.Contains(losses(7, 100, n), false) {
		t.Error("0 % lost some, or 100 % kept some")
	}
}

func TestLossRestartsWithChange(t *testing.T) {
	w := newWay(Params{LossPercent: 50}, 7)
	draw := func() (fates []bool) {
		for range 100 {
			fates = append(fates, w.Arrive(0, packet(100)))
		}
		return fates
	}
	first := draw()
	w.Change(0, Params{LossPercent: 50}, NewChance(7, "test", "up"))
	if !slices.Equal(first, draw()) {
		t.Error("the sequence did not start again")
	}
}

func TestOtherFramesAreDelayedAndNotLost(t *testing.T) {
	w := newWay(Params{LossPercent: 100, DelayMs: 3}, 1)
	arp := packet(46)
	arp.ip = false
	if !w.Arrive(0, arp) {
		t.Error("an ARP frame was lost")
	}
	w.run(3 * ms)
	if len(w.left) != 1 || w.left[0].at != 3*ms {
		t.Errorf("departures %v", w.times())
	}
}

func TestPrefixesPassEachOther(t *testing.T) {
	prefixes := NewPrefixDelays(map[netip.Prefix]float64{
		netip.MustParsePrefix("10.65.0.0/16"): 50, netip.MustParsePrefix("10.65.0.2/32"): 2, netip.MustParsePrefix("fd00::/8"): 9,
	})
	for text, want := range map[string]int64{"10.65.0.2": 2 * ms, "10.65.0.3": 50 * ms, "10.66.0.1": 0, "fd00::1": 9 * ms} {
		if got := prefixes.delay[prefixes.classOf(netip.MustParseAddr(text))]; got != want {
			t.Errorf("%s: %d ns, want %d", text, got, want)
		}
	}
	w := &way{Direction: NewDirection(Params{DelayMs: 1}, prefixes, NewChance(1, "test", "up"))}
	slow, fast := packet(100), packet(100)
	slow.class = prefixes.classOf(netip.MustParseAddr("10.65.9.9"))
	fast.class = prefixes.classOf(netip.MustParseAddr("10.65.0.2"))
	w.Arrive(0, slow)
	w.Arrive(0, fast)
	w.run(100 * ms)
	if w.left[0].frame != fast || w.left[0].at != 3*ms || w.left[1].at != 51*ms {
		t.Errorf("departures %v", w.times())
	}
}

func TestMemoryIsBounded(t *testing.T) {
	w := newWay(Params{DelayMs: 1000}, 1)
	for range maxHeldBytes/smallFrame + 10 {
		w.Arrive(0, &Frame{Data: make([]byte, smallFrame), Bytes: 1500})
	}
	if c := w.CountersAt(0); c.DroppedMemory != 10 || w.heldBytes > maxHeldBytes {
		t.Errorf("%d dropped, %d bytes held", c.DroppedMemory, w.heldBytes)
	}
}

// TestEveryPacketIsCounted changes the conditions at random times: every loss is counted, no queue exceeds its limit,
// no flow is reordered without reordering in its conditions, and departure times do not decrease.
func TestEveryPacketIsCounted(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		reorders := seed%2 == 1
		w := newWay(Params{RateKbps: 1000}, seed)
		now := int64(0)
		for range 500 {
			now += random.Int64N(3 * ms)
			w.run(now)
			if random.IntN(20) == 0 {
				chance := NewChance(seed, "test", "up")
				if random.IntN(2) == 0 {
					chance = nil
				}
				w.Change(now, randomParams(random, reorders), chance)
				continue
			}
			bytes, packets := w.queueBytes(), w.queuePackets()
			w.Arrive(now-random.Int64N(ms), flowPacket(40+random.IntN(1460), random.IntN(5)))
			if w.over(0, 0) && (w.queueBytes() > bytes || w.queuePackets() > packets) {
				t.Fatalf("seed %d: a queue above its limit grew", seed)
			}
		}
		c := w.CountersAt(now)
		dropped := c.DroppedQueue + c.DroppedCodel + c.DroppedLoss + c.DroppedMemory
		if c.PacketsIn+c.Duplicated != c.PacketsOut+dropped+uint64(c.QueuePackets+c.DelayedPackets) {
			t.Fatalf("seed %d: %+v", seed, c)
		}
		w.run(1 << 60)
		if c = w.CountersAt(1 << 60); c.QueuePackets+c.DelayedPackets+c.QueueBytes+w.heldBytes != 0 {
			t.Fatalf("seed %d: something stayed: %+v", seed, c)
		}
		next := map[int]uint64{}
		for _, d := range w.left {
			if !reorders && d.order < next[d.flow] {
				t.Fatalf("seed %d: flow %d was reordered", seed, d.flow)
			}
			next[d.flow] = d.order
		}
		if !reorders && !slices.IsSorted(w.times()) { // a packet that skips the delay may have arrived late
			t.Fatalf("seed %d: departures go back in time", seed)
		}
	}
}

func randomParams(random *rand.Rand, reorders bool) Params {
	params := Params{
		RateKbps: float64(random.IntN(3)) * 2000, DelayMs: random.Float64() * 20, JitterMs: random.Float64() * 5,
		JitterDistribution: DistributionNames()[random.IntN(4)], LossPercent: random.Float64() * 30,
		Queue: randomQueue(random), DuplicatePercent: random.Float64() * 30,
	}
	if reorders {
		params.ReorderPercent = random.Float64() * 30
	}
	if random.IntN(2) == 0 {
		params.LossModel = &LossModel{PPercent: random.Float64() * 20, RPercent: 20, BadLossPercent: 100}
	}
	if random.IntN(3) == 0 {
		params.RateKbps, params.Opportunities = 0, traced(2, 3, 3, 9).Opportunities
	}
	return params
}

// randomQueue returns a short queue with any discipline.
func randomQueue(random *rand.Rand) Queue {
	queue := Queue{
		Discipline: []string{DropTail, Codel, FqCodel}[random.IntN(3)], TargetMs: 0.5 + random.Float64(), IntervalMs: 2 + 10*random.Float64(),
	}
	if random.IntN(2) == 0 {
		queue.Packets = 1 + random.IntN(20)
	} else {
		queue.Bytes = MinQueueBytes + random.IntN(20_000)
	}
	return queue
}
