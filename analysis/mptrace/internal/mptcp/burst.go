package mptcp

import "mplab/analysis/mptrace/tables"

// burst is a run of consecutive new data on one subflow: no other subflow
// carried new data of the direction in between.
type burst struct {
	sub             *Sub
	startNS, lastNS int64
	offset, bytes   uint64
	packets         int64
}

// bursts holds the finished bursts of one direction.
type bursts struct {
	count int64
	kept  thinned[burstRow]
}

// burstRow is a finished burst.
type burstRow struct {
	sub               int32
	startNS, duration int64
	offset            uint64
	bytes, packets    int64
}

// turn ends the current burst and starts one on another subflow.
func (d *direction) turn(s *Sub, offset uint64, timeNS int64, keep bool, limit int) {
	d.endBurst(keep, limit)
	d.burst = burst{sub: s, startNS: timeNS, offset: offset}
}

func (d *direction) endBurst(keep bool, limit int) {
	b := &d.burst
	if b.sub == nil {
		return
	}
	d.bursts.count++
	if keep {
		d.bursts.kept.add(burstRow{b.sub.ID, b.startNS, b.lastNS - b.startNS, b.offset, int64(b.bytes), b.packets}, limit)
	}
	b.sub = nil
}

// switches returns how often the subflow changed. All bursts must have ended.
func (b *bursts) switches() int64 { return max(0, b.count-1) }

func (e *Engine) burstRows(c *Conn, d *direction, dir int) {
	for i, b := range d.bursts.kept.values {
		e.out.Bursts.Add(tables.Burst{
			ConnectionID: c.ID, SubflowID: b.sub, Direction: tables.Directions[dir],
			StartNS: b.startNS, DurationS: seconds(b.duration), Offset: d.row(b.offset), Bytes: b.bytes, Packets: b.packets,
			Weight: d.bursts.kept.weight(i),
		})
	}
}
