package ends

import "math"

// timing is the second pass; it finds the clock and the shortest delay of each
// path.
type timing struct {
	matcher  *matcher
	envelope *envelope
	paths    map[int32]*[2]rules
	clocks   line // rough estimate of the first pass
}

// Slack in addition to the uncertainty of the clocks.
const (
	roughSlack = 5e6 // ns
	fineSlack  = 1e6
	mostSlack  = 2e9
)

// slackOf returns the maximum clock error over a capture of the given length,
// in ns.
func slackOf(c Clock, base, width float64) int64 {
	slack := base + c.UncertaintyMS*1e6
	if !c.DriftKnown {
		slack += maxDriftPPM * ppm * width
	}
	if !c.Known {
		slack += mostSlack
	}
	return int64(min(slack, mostSlack))
}

func newTiming(o Options, known *acquaintance, sketches [2]*sketch) *timing {
	phone := sketches[phoneEnd]
	width := float64(phone.last - phone.first)
	t := &timing{clocks: known.coarse, envelope: newEnvelope(line{start: phone.first}, width), paths: map[int32]*[2]rules{}}
	slack := slackOf(known.clock, roughSlack, width)
	if o.SameClock {
		slack = roughSlack
	}
	t.matcher = &matcher{
		clock: known.coarse, slack: slack, window: o.WindowNS, flows: newFlows(known, o.MaxFlows),
		rules: func(iface int32) *[2]rules {
			if t.paths[iface] == nil {
				r := makeRules(o, known, iface, t, slack)
				t.paths[iface] = &r
			}
			return t.paths[iface]
		},
	}
	return t
}

func makeRules(o Options, known *acquaintance, iface int32, j judge, slack int64) (both [2]rules) {
	for dir := range both {
		both[dir] = rules{
			judge: j, slack: slack, window: o.WindowNS, most: o.MaxInFlight,
			begin: math.MinInt64, end: math.MaxInt64,
		}
		if ids := known.ids[iface]; ids != nil {
			both[dir].kept = ids[dir].kept()
		}
	}
	return both
}

func (t *timing) delay(d *direction, sentNS, arrivedNS int64) {
	if d.flow.iface >= 0 {
		t.envelope.add(d.flow.iface, int(d.dir), sentNS, arrivedNS)
	}
}

func (t *timing) lose(*direction, *transmission, uint64, uint64) {}

func (t *timing) loseAck(*direction, *ack) {}

// result returns the clock estimated from all packets.
func (t *timing) result(o Options, name func(int32) string) (Clock, line) {
	rest, clock := t.envelope.estimate(name)
	all := line{
		start:  t.clocks.start,
		offset: t.clocks.offset + rest.offset*(1+t.clocks.slope),
		slope:  (1+t.clocks.slope)*(1+rest.slope) - 1,
	}
	if o.SameClock {
		all = line{start: t.clocks.start}
		clock.Same, clock.Known, clock.DriftKnown = true, true, true
		clock.UncertaintyMS, clock.DriftErrorPPM, clock.Path = 0, 0, ""
	}
	clock.OffsetMS, clock.DriftPPM = all.offset/1e6, all.slope/ppm
	return clock, all
}

// fastest returns the shortest delay of a path's direction, by a given clock,
// in ns.
func (t *timing) fastest(iface int32, dir int, clock line) int64 {
	c := t.envelope.paths[iface]
	if c == nil || c[dir].n == 0 {
		return 0
	}
	// The envelope uses the rough clock; the difference of the two clocks is a
	// line.
	slope := (1+clock.slope)/(1+t.clocks.slope) - 1
	offset := (clock.offset - t.clocks.offset) / (1 + t.clocks.slope)
	if dir == Down {
		return int64(c[Down].hull.low(-slope) + offset)
	}
	return int64(c[Up].hull.low(slope) - offset)
}
