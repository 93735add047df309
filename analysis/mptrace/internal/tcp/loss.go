package tcp

import (
	"slices"
	"sort"

	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/packet"
)

// loss is the state of a direction with losses, retransmissions, reordering or
// duplicate acknowledgements.
type loss struct {
	dupACKs    int   // since the last progress
	evidenceNS int64 // time of the last duplicate acknowledgement or new SACK block
	sacked     interval.Set
	recovering bool
	recover    uint64 // the recovery ends when this number is acknowledged

	holes   []hole // ascending
	pending []pending
	oldest  int // index in pending once it is full

	twiceSegments, twiceBytes, holeSegments, holeBytes, reordered, spurious int64
	causes                                                                  [Causes]int64
}

func (s *stream) losses() *loss {
	if s.loss == nil {
		s.loss = new(loss)
	}
	return s.loss
}

// calm reports whether there is currently no sign of a loss.
func (s *stream) calm() bool {
	return s.loss == nil || (s.loss.dupACKs == 0 && s.loss.sacked.Bytes() == 0)
}

// progress records that all data below acked is acknowledged.
func (l *loss) progress(acked uint64) {
	l.dupACKs = 0
	l.sacked.Below(acked)
	if acked >= l.recover {
		l.recovering = false
	}
}

// hole is a range of skipped sequence numbers.
type hole struct {
	lo, hi        uint64
	timeNS        int64  // time when it appeared
	before, after uint16 // IPv4 identifications of its neighbours
}

// maxHoles bounds the memory of one direction; beyond it, the oldest ones are
// forgotten.
const maxHoles = 256

func (l *loss) skip(h hole) {
	if len(l.holes) == maxHoles {
		l.holes = slices.Delete(l.holes, 0, maxHoles/2)
	}
	l.holes = append(l.holes, h)
}

// fill removes [lo, hi) from the holes and returns the first hole that it
// touched.
func (l *loss) fill(lo, hi uint64) (hole, bool) {
	i := sort.Search(len(l.holes), func(i int) bool { return l.holes[i].hi > lo })
	if i == len(l.holes) || l.holes[i].lo >= hi {
		return hole{}, false
	}
	found := l.holes[i]
	for i < len(l.holes) && l.holes[i].lo < hi {
		left, right := l.holes[i], l.holes[i]
		left.hi, right.lo = min(left.hi, lo), max(right.lo, hi)
		switch {
		case left.lo < left.hi && right.lo < right.hi:
			l.holes[i] = right
			l.holes = slices.Insert(l.holes, i, left)
			return found, true
		case left.lo < left.hi:
			l.holes[i] = left
			i++
		case right.lo < right.hi:
			l.holes[i] = right
			i++
		default:
			l.holes = slices.Delete(l.holes, i, i+1)
		}
	}
	return found, true
}

// reorderNS is the assumed minimum round trip without a measurement.
const reorderNS = 3e6

// overtaken reports whether payload that fills a hole was reordered: it was
// sent before the segment that made the hole, and not again after it:
//
//   - The IPv4 identifications of the hole's neighbours increase, and that of
//     the segment is between them. If it is above both, the segment was sent
//     later.
//   - The receiver did not report the hole (duplicate acknowledgements, SACK),
//     and less than the minimum round trip of the whole path has passed.
func (f *Flow) overtaken(dir uint8, p *packet.Packet, h hole, known bool, hi uint64) bool {
	s := &f.streams[dir]
	if !known {
		h.timeNS = s.firstPayloadNS // below the first number: as old as the direction
	} else if ids := h.after - h.before; p.Quirks&packet.IPv6 == 0 && p.IPID != 0 && h.before != 0 && ids > 0 && ids < 1<<14 {
		if place := p.IPID - h.before; place > 0 && place < ids {
			return true
		}
		if later := p.IPID - h.after; later > 0 && later < 1<<14 {
			return false
		}
	}
	return p.TimeNS-h.timeNS < f.leastRTT() && s.loss.dupACKs == 0 && s.loss.sacked.Top().Hi <= hi
}

// leastRTT returns the minimum round trip of the whole path, in ns.
func (f *Flow) leastRTT() int64 {
	least, known := f.handshakeNS()
	up, down := &f.streams[Up].rtt, &f.streams[Down].rtt
	if both := up.Min() + down.Min(); up.N() > 0 && down.N() > 0 && (!known || both < least) {
		return both
	}
	if !known {
		return reorderNS
	}
	return least
}
