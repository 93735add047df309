package sched

func init() { register("earliest", func() Scheduler { return earliest{} }) }

// earliest takes the path on which the message arrives first, among those with
// room. Unlike txDelay it counts with the rate that a path has really
// delivered: congestion windows that are larger than the path needs (BBR's, or
// a grown cubic one) make it look faster than it is. The least round trip
// stands for an empty path, what is queued for its filling.
type earliest struct{}

func (earliest) Place(m Message, paths []Path) Paths {
	return One(least(paths, true, func(p *Path) float64 {
		way := min(p.MinRTT, p.RTT).Seconds()
		rate := p.Rate
		if rate <= 0 && way > 0 {
			rate = float64(p.Window) / way
		}
		if rate <= 0 {
			return way / 2
		}
		return way/2 + float64(p.Queued+m.Size)/rate
	}))
}
