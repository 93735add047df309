package tcp

import (
	"slices"
	"sort"

	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/packet"
)

// loss is what is known of a direction in which something was lost, sent twice
// or overtaken, or of which duplicate acknowledgements came.
type loss struct {
	dupACKs    int   // since the last progress
	evidenceNS int64 // last duplicate acknowledgement or new SACK block
	sacked     interval.Set
	recovering bool
	recover    uint64 // the recovery ends when this is acknowledged

	holes   []hole // ascending
	pending []pending
	oldest  int // of pending, once it is full

	twiceSegments, twiceBytes, holeSegments, holeBytes, reordered, spurious int64
	causes                                                                  [Causes]int64
}

func (s *stream) losses() *loss {
	if s.loss == nil {
		s.loss = new(loss)
	}
	return s.loss
}

// calm says whether nothing tells of a loss at present.
func (s *stream) calm() bool {
	return s.loss == nil || (s.loss.dupACKs == 0 && s.loss.sacked.Bytes() == 0)
}

// progress takes note that all below acked is acknowledged.
func (l *loss) progress(acked uint64) {
	l.dupACKs = 0
	l.sacked.Below(acked)
	if acked >= l.recover {
		l.recovering = false
	}
}

// hole is a range of numbers that was passed over.
type hole struct {
	lo, hi        uint64
	timeNS        int64  // when it was made
	before, after uint16 // IPv4 identifications of its neighbours
}

// maxHoles bounds the memory of one direction; the oldest are forgotten.
const maxHoles = 256

func (l *loss) skip(h hole) {
	if len(l.holes) == maxHoles {
		l.holes = slices.Delete(l.holes, 0, maxHoles/2)
	}
	l.holes = append(l.holes, h)
}

// fill takes [lo, hi) out of the holes and returns the first that it touched.
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

// reorderNS stands for the least round trip when none was measured.
const reorderNS = 3e6

// overtaken says whether payload that fills a hole was sent before the segment
// that made the hole, and not again after it:
//
//   - The IPv4 identifications of the hole's neighbours count up, and that of
//     the segment lies between them. If it lies above both, it was sent later.
//   - The receiver did not tell of the hole (duplicate acknowledgements, SACK),
//     and less time passed than the least round trip of the whole path.
func (f *Flow) overtaken(dir uint8, p *packet.Packet, h hole, known bool, hi uint64) bool {
	s := f.streams[dir]
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

// leastRTT is the least round trip of the whole path.
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
