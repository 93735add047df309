package sched

func init() { register("earliest", func() Scheduler { return earliest{} }) }

// earliest chooses, among the paths with room, the one on which the message arrives
// first. Unlike txDelay it uses the delivery rate that a path has reached. A congestion
// window that is larger than the path needs (BBR's, or a grown cubic one) would make
// the path look faster than it is. The minimum RTT is the delay of the empty path. The
// bytes in TCP add their transmission time.
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
