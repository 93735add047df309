package mptcp

import (
	"cmp"
	"slices"
)

// handovers finds the handovers of a connection that has ended: the payload
// moved for good, as in the analysis of Baerts and De Coninck. Subflow b is one
// that was handed over to when it began to carry new data, in whatever
// direction, behind the last progress of each subflow that had carried some
// before: behind their last new payload and their last acknowledgement of new
// payload. What TCP sends into the void after that, FIN and RST are no
// progress. The one that was left is the one with the latest progress.
func (e *Engine) handovers(c *Conn) {
	if c.made < 2 {
		return
	}
	var used []*Sub
	for _, s := range c.Subs {
		if s.firstNewNS != 0 {
			used = append(used, s)
		}
	}
	slices.SortStableFunc(used, func(a, b *Sub) int { return cmp.Compare(a.firstNewNS, b.firstNewNS) })
	for i, b := range used {
		var left *Sub
		for _, a := range used[:i] {
			if left == nil || a.progressNS > left.progressNS {
				left = a
			}
		}
		if left != nil && left.progressNS < b.firstNewNS {
			c.handovers++
			e.note(b, event{
				timeNS: b.firstNewNS, kind: evHandover, dir: b.firstNewDir, value: int64(left.ID), address: -1, addressID: -1,
			})
		}
	}
}
