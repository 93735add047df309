package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"mplab/linkem/internal/trace"
)

// traced returns conditions with a trace of the given times in ms.
func traced(ms ...uint32) Params {
	t, err := trace.New(ms)
	if err != nil {
		panic(err)
	}
	return Params{Opportunities: t, Queue: Queue{Packets: 1000}}
}

// cast sends packets of the given sizes at a time and returns all departures until the end, in ms.
func cast(w *way, at int64, until int64, sizes ...int) []float64 {
	for _, bytes := range sizes {
		w.Arrive(at, packet(bytes))
	}
	w.run(until)
	var times []float64
	for _, t := range w.times() {
		times = append(times, float64(t)/1e6)
	}
	return times
}

func repeated(bytes, n int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = bytes
	}
	return sizes
}

func TestTraceDeliversOnePacketAtAnOpportunity(t *testing.T) {
	got := cast(newWay(traced(1, 1, 5), 1), 0, 100*ms, repeated(1500, 7)...)
	if want := []float64{1, 1, 5, 6, 6, 10, 11}; !slices.Equal(got, want) {
		t.Errorf("departures %v, want %v", got, want)
	}
}

func TestTraceSharesOpportunities(t *testing.T) {
	// 500 bytes need 504 with their header: two are complete at the first opportunity, and the third at the second.
	if got, want := cast(newWay(traced(2, 4), 1), 0, 100*ms, 500, 500, 500, 500, 500), []float64{2, 2, 4, 4, 4}; !slices.Equal(got, want) {
		t.Errorf("departures %v, want %v", got, want)
	}
	// A bundle of 3000 bytes needs two opportunities and leaves the rest of the second to the next packet.
	if got, want := cast(newWay(traced(2, 4), 1), 0, 100*ms, 3000-trace.HeaderBytes-200, 190), []float64{4, 4}; !slices.Equal(got, want) {
		t.Errorf("departures %v, want %v", got, want)
	}
}

func TestTraceOpportunitiesAreNotSaved(t *testing.T) {
	w := newWay(traced(1, 2, 3, 10), 1)
	if got, want := cast(w, 5*ms/2, 1000*ms, repeated(1500, 3)...), []float64{3, 10, 11}; !slices.Equal(got, want) {
		t.Errorf("departures %v, want %v", got, want)
	}
	w.left = nil
	// Much later, in the middle of a repetition.
	if got, want := cast(w, 50_002*ms+1, 60_000*ms, 1500, 1500), []float64{50_003, 50_010}; !slices.Equal(got, want) {
		t.Errorf("departures %v, want %v", got, want)
	}
}

func TestTraceBeginsWithChange(t *testing.T) {
	w := newWay(Params{RateKbps: 12, Queue: Queue{Packets: 10}}, 1) // a packet of 1500 bytes takes a second
	w.Arrive(0, packet(1500))
	w.Arrive(0, packet(1500))
	w.Change(500*ms+ms/2, traced(3, 4), NewChance(1, "test", "up"))
	// Half of the first packet was left: it uses a part of the first opportunity; the second packet uses the rest.
	got := cast(w, 501*ms, 600*ms, 1500)
	if want := []float64{503.5, 504.5, 507.5}; !slices.Equal(got, want) {
		t.Errorf("departures %v, want %v", got, want)
	}
}

func TestTraceGoesOnIfAsked(t *testing.T) {
	w := newWay(traced(10, 20, 50), 1)
	w.Arrive(0, packet(3000-trace.HeaderBytes)) // of which 1504 go at 10 ms
	w.Arrive(0, packet(1500))
	same := traced(10, 20, 50)
	same.DelayMs = 5
	w.Change(12*ms, same, nil)
	if got, want := cast(w, 12*ms, 200*ms, 1500), []float64{25, 55, 65}; !slices.Equal(got, want) {
		t.Errorf("departures %v, want %v", got, want)
	}
	other := traced(10, 20, 50)
	other.Trace = "another"
	w.left = nil
	w.Change(205*ms, other, nil)
	if got, want := cast(w, 205*ms, 300*ms, 1500), []float64{215}; !slices.Equal(got, want) {
		t.Errorf("departures %v, want %v: another trace begins", got, want)
	}
}

func TestTraceChangesToRate(t *testing.T) {
	w := newWay(traced(10, 20), 1)
	w.Arrive(0, packet(3000-trace.HeaderBytes)) // of which 1504 go at 10 ms
	w.Arrive(0, packet(1000))
	w.Change(12*ms, Params{RateKbps: 8000, Queue: Queue{Packets: 10}}, NewChance(1, "test", "up"))
	if got, want := cast(w, 12*ms, 100*ms), []float64{12 + 1.496, 12 + 2.496}; !slices.Equal(got, want) {
		t.Errorf("departures %v, want %v", got, want)
	}
}

func TestTraceHasAQueue(t *testing.T) {
	params := traced(10)
	params.Queue = Queue{}
	w := newWay(params, 1)
	for range 150 {
		w.Arrive(0, packet(1500))
	}
	if c := w.CountersAt(0); c.QueueBytes != DefaultQueueBytes || c.DroppedQueue != 50 {
		t.Errorf("%+v", c)
	}
}

// mahimahi is Mahimahi's link, implemented as in its paper (§4): a list of opportunities, each used at its time by the
// waiting packets. Times are in ns.
func mahimahi(t *trace.Trace, arrivals []int64, sizes []int, until int64) []int64 {
	var departures []int64
	next, left := 0, 0
	for base := int64(0); ; base += int64(t.LengthMs()) * ms {
		for i := range t.Len() {
			at := base + int64(t.At(i))*ms
			if at > until {
				return departures
			}
			for bytes := trace.OpportunityBytes; bytes > 0; {
				if left == 0 {
					if next == len(arrivals) || arrivals[next] > at {
						break
					}
					left = sizes[next] + trace.HeaderBytes
					next++
				}
				used := min(left, bytes)
				left -= used
				bytes -= used
				if left == 0 {
					departures = append(departures, at)
				}
			}
		}
	}
}

func TestTraceIsServedAsByMahimahi(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		times := make([]uint32, 1+random.IntN(40))
		at := uint32(0)
		for i := range times {
			at += uint32(random.IntN(12))
			times[i] = at
		}
		times[len(times)-1] += uint32(1)
		params := traced(times...)
		params.Queue = Queue{Packets: MaxQueuePackets}
		w := newWay(params, seed)
		var arrivals []int64
		var sizes []int
		for now := int64(0); len(arrivals) < 300; {
			now += random.Int64N(10*ms) * random.Int64N(20)
			size := 20 + random.IntN(1900)
			arrivals, sizes = append(arrivals, now), append(sizes, size)
			w.Arrive(now, packet(size))
			if random.IntN(3) == 0 {
				w.run(now)
			}
		}
		const until = 60_000 * ms
		w.run(until)
		if want := mahimahi(params.Opportunities, arrivals, sizes, until); !slices.Equal(w.times(), want) {
			t.Fatalf("seed %d: other departures than Mahimahi's", seed)
		}
	}
}
