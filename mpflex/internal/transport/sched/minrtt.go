package sched

func init() { register("minrtt", func() Scheduler { return minRTT{} }) }

// minRTT chooses the path with the lowest smoothed RTT among those with room, as the
// former default scheduler of Multipath TCP in Linux (nikravesh2016 §4.3).
type minRTT struct{}

func (minRTT) Place(_ Message, paths []Path) Paths { return One(least(paths, true, rtt)) }
