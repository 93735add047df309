package ends

import (
	"math"
	"slices"
)

// Clock relates the clocks of the two ends: at time t of the phone's clock the
// proxy's clock shows t + offset + drift·(t − start).
//
// The estimate uses the delays of both directions. The delay of a packet from
// phone to proxy, computed from the two clocks, is never less than the offset.
// The delay from proxy to phone is never less than the negative offset. So the
// lower hulls of the two point clouds enclose the offset (Moon, Skelly,
// Towsley, INFOCOM 1999; Zhang, Liu, Xia, INFOCOM 2002). The estimate is the
// middle of that band. It is exact if the shortest delays of both directions
// are equal. Its error is half the difference of the shortest delays, and the
// uncertainty bounds the error. Two captures contain no more information about
// the offset.
type Clock struct {
	Known         bool    `json:"known" doc:"packets of both directions were matched, or the clock is the same; else delays are above the shortest of their direction"`
	Same          bool    `json:"same" doc:"one clock for both ends was asked for"`
	StartNS       int64   `json:"start_ns" unit:"ns" doc:"time of the offset, by the phone's clock, since 1970 UTC"`
	OffsetMS      float64 `json:"offset_ms" unit:"ms" doc:"proxy's clock − phone's clock at the start"`
	UncertaintyMS float64 `json:"uncertainty_ms" unit:"ms" doc:"half of the shortest round trip of the best path: how far the offset can be off"`
	DriftKnown    bool    `json:"drift_known" doc:"the drift could be estimated; else 0 stands for it"`
	DriftPPM      float64 `json:"drift_ppm" unit:"ppm" doc:"how much faster the proxy's clock runs"`
	DriftErrorPPM float64 `json:"drift_error_ppm" unit:"ppm" doc:"how far the drift can be off, from how near the shortest delays stay to a line; also where drift_known is false"`
	Path          string  `json:"path" doc:"the phone's interface on the path that gave the offset"`
	PointsUp      int64   `json:"points_up" unit:"packets" doc:"delays used, phone → proxy"`
	PointsDown    int64   `json:"points_down" unit:"packets"`
}

// line is an estimated offset and drift.
type line struct {
	start         int64   // by the phone's clock
	offset, slope float64 // ns, and ns per ns
}

// phone converts a time of the proxy's clock to the phone's clock.
func (l line) phone(proxyNS int64) int64 {
	x := float64(proxyNS-l.start) - l.offset
	return l.start + int64(math.Round(x/(1+l.slope)))
}

const (
	bins = 64 // per capture; each keeps its lowest delay

	enoughBins  = 8   // minimum number of filled bins for a drift estimate
	maxDriftPPM = 100 // an estimate is used only if its error is smaller: clocks are this accurate without one
	ppm         = 1e-6
)

// cloud holds the delays of one direction on one path.
type cloud struct {
	hull   hull
	lowest [bins]point // per bin, by height above the coarse line
	filled [bins]bool
	n      int64
	sumX   float64
}

func (c *cloud) add(p point, width, slope float64) {
	if !c.hull.add(p) {
		return
	}
	c.n++
	c.sumX += p.x
	i := max(0, min(bins-1, int(p.x/width*bins)))
	if !c.filled[i] || p.y-slope*p.x < c.lowest[i].y-slope*c.lowest[i].x {
		c.lowest[i], c.filled[i] = p, true
	}
}

// drift returns the slope of the lower edge of the cloud and the bound of its
// error. The lowest delays of the bins should be on the edge.
func (c *cloud) drift() (slope, bad float64) {
	bad = math.Inf(1)
	if c.n == 0 {
		return 0, bad
	}
	slope = c.hull.edge(c.sumX / float64(c.n))
	low := c.hull.low(slope)
	var over []float64
	first, last := -1, 0
	for i, ok := range c.filled {
		if ok {
			over = append(over, c.lowest[i].y-slope*c.lowest[i].x-low)
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	if len(over) < enoughBins {
		return slope, bad
	}
	slices.Sort(over)
	span := c.lowest[last].x - c.lowest[first].x
	return slope, 2 * over[len(over)*3/4] / span
}

// clouds holds the two clouds of a path: Up and Down.
type clouds [2]cloud

// envelope collects the delays of one pass over both captures.
type envelope struct {
	line  line    // its start is the origin of time; its slope is the coarse drift
	width float64 // ns from first to last packet
	paths map[int32]*clouds
}

func newEnvelope(coarse line, width float64) *envelope {
	return &envelope{line: coarse, width: max(width, 1), paths: map[int32]*clouds{}}
}

// add adds a packet with its sending and arrival times, each by the clock of
// that end.
func (e *envelope) add(path int32, dir int, sentNS, arrivedNS int64) {
	c := e.paths[path]
	if c == nil {
		c = new(clouds)
		e.paths[path] = c
	}
	x, slope := float64(sentNS-e.line.start), e.line.slope
	if dir == Down {
		x, slope = float64(arrivedNS-e.line.start), -slope
	}
	c[dir].add(point{x, float64(arrivedNS - sentNS)}, e.width, slope)
}

// estimate returns the middle of the band as line and Clock. name returns the
// name of a path.
func (e *envelope) estimate(name func(int32) string) (line, Clock) {
	clock := Clock{StartNS: e.line.start, DriftErrorPPM: -1}
	paths := make([]int32, 0, len(e.paths))
	for p, c := range e.paths {
		clock.PointsUp += c[Up].n
		clock.PointsDown += c[Down].n
		paths = append(paths, p)
	}
	slices.Sort(paths)
	slope, bad := e.drift(paths)
	if !math.IsInf(bad, 1) {
		clock.DriftErrorPPM = bad / ppm
	}
	if bad > maxDriftPPM*ppm {
		slope = 0
	} else {
		clock.DriftKnown, clock.DriftPPM = true, slope/ppm
	}
	best, offset := math.Inf(1), 0.0
	above, below := math.Inf(1), math.Inf(-1)
	for _, p := range paths {
		c := e.paths[p]
		up, down := c[Up].hull.low(slope), c[Down].hull.low(-slope)
		if c[Up].n > 0 {
			above = min(above, up)
		}
		if c[Down].n > 0 {
			below = max(below, -down)
		}
		if c[Up].n > 0 && c[Down].n > 0 && up+down < best {
			best, offset = up+down, (up-down)/2
			clock.Path = name(p)
		}
	}
	switch {
	case !math.IsInf(best, 1):
		clock.Known, clock.UncertaintyMS = true, max(best, 0)/2e6
		if below <= above { // no path can have negative delays
			offset = max(below, min(above, offset))
		}
	case !math.IsInf(above, 1):
		offset = above
	case !math.IsInf(below, -1):
		offset = below
	}
	clock.OffsetMS = offset / 1e6
	return line{e.line.start, offset, slope}, clock
}

// drift returns the slope with the smallest error, of one direction or of both
// directions of a path. If both directions are good, it uses their mean,
// because a change that affects both directions equally, such as a route
// change, cancels out.
func (e *envelope) drift(paths []int32) (slope, bad float64) {
	bad = math.Inf(1)
	for _, p := range paths {
		c := e.paths[p]
		up, badUp := c[Up].drift()
		down, badDown := c[Down].drift()
		down = -down
		one, its := up, badUp
		if badDown < badUp {
			one, its = down, badDown
		}
		both := math.Abs(up-down)/2 + (badUp+badDown)/2
		if both < 2*its {
			one, its = (up+down)/2, max(both, its/2)
		}
		if its < bad {
			slope, bad = one, its
		}
	}
	return slope, bad
}
