package tcp

import "mplab/analysis/mptrace/packet"

// maxPending is the maximum number of retransmissions per direction that wait
// for a DSACK before they are reported. A DSACK arrives within a round trip.
const maxPending = 32

// pending is a retransmission that has not been reported.
type pending struct {
	Retransmission
	lo, hi uint64
	marked bool // a DSACK refers to it
}

// record keeps a retransmission until it is reported. It completes r from seg.
func (t *Tracker) record(f *Flow, p *packet.Packet, seg *Segment, r Retransmission) {
	s := &f.streams[seg.Dir]
	l := s.losses()
	r.Flow, r.Dir, r.TimeNS, r.Cause = f, seg.Dir, p.TimeNS, seg.Cause
	r.Seq, r.Start = seg.Lo, s.low
	if s.half.synSeen {
		r.Start = next(s.low, s.half.isn+1)
	}
	if seg.Cause == Unneeded {
		r.Spurious = true
		l.spurious++
	}
	n := pending{r, seg.Lo, seg.Hi, false}
	if len(l.pending) < maxPending {
		l.pending = append(l.pending, n)
		return
	}
	t.tell(&l.pending[l.oldest])
	l.pending[l.oldest] = n
	l.oldest = (l.oldest + 1) % maxPending
}

func (t *Tracker) tell(n *pending) {
	if t.o.OnRetransmission != nil {
		t.o.OnRetransmission(&n.Retransmission)
	}
}

// tellAll reports the pending retransmissions of a direction.
func (t *Tracker) tellAll(f *Flow, dir uint8) {
	if f.streams == nil || f.streams[dir].loss == nil {
		return
	}
	l := f.streams[dir].loss
	for i := range l.pending {
		t.tell(&l.pending[(l.oldest+i)%len(l.pending)])
	}
	l.pending = nil
}

// duplicate processes a DSACK for [lo, hi): the latest pending retransmissions
// of these bytes were unnecessary.
func (l *loss) duplicate(lo, hi uint64) {
	for i := len(l.pending) - 1; i >= 0 && lo < hi; i-- {
		n := &l.pending[(l.oldest+i)%len(l.pending)]
		if n.marked || n.lo >= hi || n.hi <= lo {
			continue
		}
		n.marked = true
		if !n.Spurious {
			n.Spurious = true
			l.spurious++
		}
		if n.lo <= lo {
			lo = n.hi
		} else if n.hi >= hi {
			hi = n.lo
		}
	}
}
