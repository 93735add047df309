package ends

import (
	"math"

	"mplab/analysis/mptrace/internal/hist"
	"mplab/analysis/mptrace/tables"
)

// count holds the outcomes of the transmissions of a direction; see PathEnds.
type count struct {
	sent, arrived, lost, ambiguous, notJudged    int64
	wireSent, wireLost, bytesSent, bytesLost     int64
	retransmitted, duplicated, reordered, unseen int64
	slowest                                      int64 // longest delay, in ns
	delays                                       *delays
}

func (c *count) row(row *PathEnds) {
	row.Sent, row.Arrived, row.Lost, row.Ambiguous, row.NotJudged = c.sent, c.arrived, c.lost, c.ambiguous, c.notJudged
	row.WireSent, row.WireLost, row.BytesSent, row.BytesLost = c.wireSent, c.wireLost, c.bytesSent, c.bytesLost
	row.Retransmitted, row.Duplicated, row.Reordered, row.Unseen = c.retransmitted, c.duplicated, c.reordered, c.unseen
	if c.wireSent > 0 {
		row.LostPercent = tables.Just(100 * float64(c.wireLost) / float64(c.wireSent))
	}
	if c.delays != nil {
		c.delays.row(row)
	}
}

// delays holds the one-way delays of a direction. The shortest delay of the
// path is subtracted first, so that the histogram classes are fine where delays
// differ.
type delays struct {
	over            hist.Series // delay above the shortest
	shortest        int64       // ns
	jitter, jitters float64     // ns, RFC 3550 §6.4.1: the estimate, and the sum of all estimates
}

func (d *delays) add(sentNS, delayNS int64) {
	delayNS -= d.shortest
	if d.over.N() > 0 {
		d.jitter += (math.Abs(float64(delayNS-d.over.Last())) - d.jitter) / 16
		d.jitters += d.jitter
	}
	d.over.Add(sentNS, delayNS)
}

func milliseconds(ns float64) tables.Maybe[float64] { return tables.Just(ns / 1e6) }

func (d *delays) row(row *PathEnds) {
	s, n := &d.over, d.over.N()
	at := func(ns float64) tables.Maybe[float64] { return milliseconds(ns + float64(d.shortest)) }
	q := s.Quantiles(nil, 0.25, 0.5, 0.75, 0.95, 0.99)
	row.Delays = n
	row.OWDMinMS, row.OWDMeanMS, row.OWDMaxMS = at(float64(s.Min())), at(s.Mean()), at(float64(s.Max()))
	row.OWDP25MS, row.OWDP50MS, row.OWDP75MS, row.OWDP95MS, row.OWDP99MS = at(q[0]), at(q[1]), at(q[2]), at(q[3]), at(q[4])
	row.SpreadMS = milliseconds(q[3] - q[1])
	if n > 1 {
		row.OWDStdevMS = milliseconds(s.Stdev())
		row.JitterMS = milliseconds(d.jitters / float64(n-1))
	}
}
