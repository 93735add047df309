package udpjitter

import "time"

// maxProbes bounds the probes of one flow, and so the memory for them.
const maxProbes = 1 << 20

// receiver is what one end knows of the datagrams that arrived there.
type receiver struct {
	seen       []uint64 // a bit for each number
	arrived    uint32   // different ones
	reordered  uint32   // arrived after one with a higher number (RFC 4737 §3.3)
	duplicates uint32
	next       uint32 // one more than the highest number

	jitterNs  float64 // interarrival jitter (RFC 3550 §6.4.1)
	transitNs int64   // of the datagram before
}

// take takes in the datagram with this number, which is below maxProbes, sent
// and arrived at these times of two clocks, ns. It returns false for one that
// arrived before.
func (r *receiver) take(number uint32, sent, arrived int64) bool {
	word, bit := int(number/64), uint64(1)<<(number%64)
	for len(r.seen) <= word {
		r.seen = append(r.seen, 0)
	}
	if r.seen[word]&bit != 0 {
		r.duplicates++
		return false
	}
	r.seen[word] |= bit
	if number < r.next {
		r.reordered++
	} else {
		r.next = number + 1
	}
	transit := arrived - sent
	if r.arrived > 0 {
		difference := float64(transit) - float64(r.transitNs)
		r.jitterNs += (max(difference, -difference) - r.jitterNs) / 16
	}
	r.transitNs = transit
	r.arrived++
	return true
}

// clock is unix nanoseconds that no change of the system's time touches.
type clock struct{ start time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) at(t time.Time) int64 { return c.start.UnixNano() + int64(t.Sub(c.start)) }
