package mptcp

import (
	"mplab/analysis/mptrace/internal/hist"
	"mplab/analysis/mptrace/tables"
)

// writeData writes the rows at level mptcp of a direction.
func (e *Engine) writeData(c *Conn, dir uint8) {
	row := e.out.Directions.Next()
	row.ConnectionID, row.SubflowID, row.Level, row.Direction = c.ID, tables.NoSubflow, tables.LevelMPTCP, tables.Directions[dir]
	t := &c.totals.side[dir]
	row.Segments, row.DataSegments, row.WireSegments, row.Bytes, row.Mappings = t.segments, t.segments, t.wire, t.bytes, t.mappings
	row.SegmentMax, row.SegmentMin = t.segmentMax, t.segmentMin
	row.FirstNS, row.LastNS, row.FirstPayloadNS, row.LastPayloadNS = t.firstNS, t.lastNS, t.firstNS, t.lastNS
	if c.multi.data != nil {
		e.writeSeen(c, dir, row)
	}
	if s := seconds(t.lastNS.Value - t.firstNS.Value); s > 0 {
		row.ThroughputB = tables.Just(float64(row.UniqueBytes) * 8 / s)
	}
}

// writeSeen writes the statistics of a direction whose data was seen.
func (e *Engine) writeSeen(c *Conn, dir uint8, row *tables.Direction) {
	d := &c.multi.data[dir]
	d.endBurst(e.out.Bursts != nil, e.options.Samples)
	e.warnings.IntervalBytesFilled += int64(d.holes.filled + d.below.filled)
	d.directionRow(row)
	e.burstRows(c, d, int(dir))
	if e.rates {
		e.rateRow(c, tables.NoSubflow, tables.LevelMPTCP, dir, &d.rate)
	}
	e.seriesRows(c, tables.NoSubflow, tables.LevelMPTCP, dir, &d.rtt, &d.ackSizes)
}

// directionRow fills in the statistics of a direction.
func (d *direction) directionRow(row *tables.Direction) {
	row.UniqueBytes, row.MissingBytes, row.ReinjectedBytes = int64(d.unique), int64(d.holes.in(0)), int64(d.reinjected)
	row.ZeroWindows, row.FlightMax, row.InitialWindow = d.zeroWindows, int64(d.flightMax), int64(d.initial)
	row.IdleMaxMS, row.Bursts, row.Switches = milliseconds(d.idleNS), d.bursts.count, d.bursts.switches()
	row.LastFreshNS, row.FirstACKNS, row.LastACKNS = known(d.freshNS), known(d.firstACKNS), known(d.lastACKNS)
	row.FINACKNS, row.DataFINNS = known(d.finACKNS), known(d.finNS)
	if d.windows > 0 {
		row.WindowMin, row.WindowMax = tables.Just(int64(d.windowMin)), tables.Just(int64(d.windowMax))
		row.WindowMean = tables.Just(float64(d.windowSum) / float64(d.windows))
	}
	if d.flights > 0 {
		row.FlightMean = tables.Just(float64(d.flightSum) / float64(d.flights))
	}
	if s := seconds(d.freshNS - d.firstFreshNS); s > 0 {
		row.SwitchesPS = tables.Just(float64(d.bursts.switches()) / s)
	}
	row.RoundTrips(&d.rtt)
}

// seriesRows writes the round trips and acknowledgement sizes.
func (e *Engine) seriesRows(c *Conn, subflow int32, level string, dir uint8, rtt *hist.Series, sizes *hist.Sizes) {
	name := tables.Directions[dir]
	if e.out.RTT != nil {
		for i, sample := range rtt.Kept() {
			e.out.RTT.Add(tables.RTT{
				ConnectionID: c.ID, SubflowID: subflow, Level: level, Direction: name,
				TimeNS: sample.TimeNS, RTTMS: milliseconds(sample.Value), Weight: rtt.Weight(i),
			})
		}
	}
	if e.out.ACKSizes != nil {
		sizes.Each(func(size, count int64) {
			e.out.ACKSizes.Add(tables.ACKSize{
				ConnectionID: c.ID, SubflowID: subflow, Level: level, Direction: name, Bytes: size, Count: count,
			})
		})
	}
}
