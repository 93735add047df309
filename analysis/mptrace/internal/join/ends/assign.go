package ends

import (
	"slices"

	"mplab/analysis/mptrace/internal/interval"
)

// cutting learns the packet size of a super-segment from its first arriving
// part, if that is smaller than the MSS, as on paths with a smaller MTU.
func (d *direction) cutting(t *transmission, lo, hi uint64) {
	if size := uint32(hi - lo); lo == t.lo && hi < t.hi && size < t.wire {
		d.mss -= min(uint16(t.wire-size), d.mss-1)
		t.wire = size
	}
}

// candidates returns the transmissions that can match an arrival, in the order
// of sending.
func (d *direction) candidates(lo, hi uint64, u *unit, r *rules, fits []*transmission) []*transmission {
	latest := u.timeNS - r.fastest + r.slack
	merged := false
	d.ranges.overlapping(lo, hi, func(t *transmission) bool {
		if t.sentNS <= latest {
			if t.fits(lo, u, r.kept) {
				fits = append(fits, t)
			}
			merged = merged || t.lo > lo || t.hi < hi
		}
		return true
	})
	if len(fits) == 0 && merged { // a device that merges packets may change timestamps
		d.ranges.overlapping(lo, hi, func(t *transmission) bool {
			if t.sentNS <= latest && !t.arrived() {
				fits = append(fits, t)
			}
			return true
		})
	}
	if len(fits) > 1 {
		slices.SortStableFunc(fits, func(a, b *transmission) int { return int(int32(a.order - b.order)) })
	}
	return fits
}

// fits reports whether timestamp and identification allow u to match t: u
// starts at lo and is t or a part of it, or starts before t and contains it.
// The packets of a super-segment have consecutive identifications, starting
// with that of the super-segment.
func (t *transmission) fits(lo uint64, u *unit, kept bool) bool {
	if t.flags&stamped != 0 && u.stamped && t.tsval != u.tsval {
		return false
	}
	if !kept || t.flags&numbered == 0 || !u.numbered {
		return true
	}
	if lo >= t.lo {
		return uint64(u.id-t.id) <= lo-t.lo
	}
	return uint64(t.id-u.id) <= t.lo-lo
}

// assign distributes [lo, hi) over the candidates and returns the parts that no
// candidate was missing.
func (d *direction) assign(fits []*transmission, lo, hi uint64, timeNS int64, r *rules) (rest []interval.Span) {
	rest = append(rest, interval.Span{Lo: lo, Hi: hi})
	for i, t := range fits {
		var left []interval.Span
		for _, span := range rest {
			gaps := t.missing(span.Lo, span.Hi, nil)
			for _, gap := range gaps {
				for _, o := range fits[i+1:] {
					if len(o.missing(gap.Lo, gap.Hi, nil)) > 0 {
						unite(t, o)
					}
				}
				t.take(gap.Lo, gap.Hi, timeNS)
			}
			left = without(left, span, gaps)
		}
		if t.arrived() && t.flags&ended == 0 {
			d.delivered(t, r)
		}
		rest = left
	}
	return rest
}

// without appends the parts of a span that are not in parts to left.
func without(left []interval.Span, span interval.Span, parts []interval.Span) []interval.Span {
	for _, p := range parts {
		if p.Lo > span.Lo {
			left = append(left, interval.Span{Lo: span.Lo, Hi: p.Lo})
		}
		span.Lo = p.Hi
	}
	if span.Lo < span.Hi {
		left = append(left, span)
	}
	return left
}

// unite puts two transmissions into the same group.
func unite(a, b *transmission) {
	switch {
	case a.group == nil && b.group == nil:
		a.group = new(group)
		a.group.add(a)
		a.group.add(b)
	case a.group == nil:
		b.group.add(a)
	case b.group == nil:
		a.group.add(b)
	}
}

func (g *group) add(t *transmission) {
	t.group = g
	g.sent++
	g.lastNS = max(g.lastNS, t.sentNS)
}
