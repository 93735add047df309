package sched

func init() { register("txdelay", func() Scheduler { return txDelay{} }) }

// txDelay takes the path on which the message arrives first by the paper's
// estimate, srtt + queued / (cwnd / srtt), among those with room
// (nikravesh2016 §4.3, "TxDelay").
type txDelay struct{}

func (txDelay) Place(m Message, paths []Path) Paths {
	return One(least(paths, true, func(p *Path) float64 {
		if p.Window == 0 {
			return rtt(p)
		}
		return rtt(p) * (1 + float64(p.Queued+m.Size)/float64(p.Window))
	}))
}
