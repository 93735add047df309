package udpjitter

import "time"

// maxProbes bounds the probes of a flow, and so their memory.
const maxProbes = 1 << 20

// receiver is one end's state of the datagrams that arrived there.
type receiver struct {
	seen       []uint64 // one bit per number
	arrived    uint32   // different datagrams
	reordered  uint32   // arrived after one with a higher number (RFC 4737 §3.3)
	duplicates uint32
	next       uint32 // highest number + 1

	jitterNs  float64 // interarrival jitter (RFC 3550 §6.4.1)
	transitNs int64   // transit time of the datagram before
}

// take counts the datagram with this number, which must be below maxProbes. sent and
// arrived are times of two clocks, in ns. It returns false for a duplicate.
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

// clock returns unix nanoseconds that do not change when the system's time is set.
type clock struct{ start time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) at(t time.Time) int64 { return c.start.UnixNano() + int64(t.Sub(c.start)) }
