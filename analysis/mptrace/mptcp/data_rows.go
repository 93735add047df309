package mptcp

import (
	"mplab/analysis/mptrace/hist"
	"mplab/analysis/mptrace/tables"
)

// writeData writes the rows of a direction's data.
func (e *Engine) writeData(c *Conn, dir uint8) {
	d := &direction{}
	if c.multi.data != nil {
		d = &c.multi.data[dir]
	}
	d.endBurst(e.out.Bursts != nil, e.options.Samples)
	e.warnings.IntervalBytesFilled += int64(d.holes.filled + d.below.filled)
	e.out.Directions.Add(d.directionRow(c, dir))
	e.burstRows(c, d, int(dir))
	if e.rates {
		e.rateRow(c, tables.NoSubflow, tables.LevelMPTCP, dir, &d.rate)
	}
	e.seriesRows(c, tables.NoSubflow, tables.LevelMPTCP, dir, &d.rtt, &d.ackSizes)
}

// directionRow is the row of a direction's data.
func (d *direction) directionRow(c *Conn, dir uint8) tables.Direction {
	t := &c.totals.side[dir]
	row := tables.Direction{
		ConnectionID: c.ID, SubflowID: tables.NoSubflow, Level: tables.LevelMPTCP, Direction: tables.Directions[dir],
		Segments: t.segments, DataSegments: t.segments, WireSegments: t.wire, Bytes: t.bytes,
		UniqueBytes: int64(d.unique), MissingBytes: int64(d.holes.in(0)), ReinjectedBytes: int64(d.reinjected),
		ZeroWindows: d.zeroWindows, FlightMax: int64(d.flightMax), InitialWindow: int64(d.initial),
		SegmentMax: t.segmentMax, SegmentMin: t.segmentMin, IdleMaxMS: milliseconds(d.idleNS),
		FirstNS: t.firstNS, LastNS: t.lastNS, FirstPayloadNS: t.firstNS, LastPayloadNS: t.lastNS,
		LastFreshNS: known(d.freshNS), FirstACKNS: known(d.firstACKNS), LastACKNS: known(d.lastACKNS), FINACKNS: known(d.finACKNS),
		Mappings: t.mappings, Bursts: d.bursts.count, Switches: d.bursts.switches(), DataFINNS: known(d.finNS),
	}
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
	if s := seconds(t.lastNS.Value - t.firstNS.Value); s > 0 {
		row.ThroughputB = tables.Just(float64(d.unique) * 8 / s)
	}
	row.RoundTrips(&d.rtt)
	return row
}

// seriesRows writes round trips and sizes of acknowledgements.
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
