package mptcp

import (
	"cmp"
	"slices"
)

// handovers finds the handovers of a connection that has ended: payload moved
// permanently to another subflow, as defined by Baerts and De Coninck. Subflow
// b received a handover if it first carried new data, in either direction,
// after the last progress of every subflow that had carried new data before.
// Progress is new payload or the acknowledgement of new payload; later
// retransmissions, FIN and RST do not count. The subflow that was left is the
// one with the latest progress.
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
