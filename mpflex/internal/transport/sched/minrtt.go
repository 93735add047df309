package sched

func init() { register("minrtt", func() Scheduler { return minRTT{} }) }

// minRTT takes the path with the least smoothed round trip among those with
// room, as the default scheduler of Multipath TCP in Linux did (nikravesh2016 §4.3).
type minRTT struct{}

func (minRTT) Place(_ Message, paths []Path) Paths { return One(least(paths, true, rtt)) }
