package sched

func init() { register("txdelay", func() Scheduler { return txDelay{} }) }

// txDelay takes the path on which the message arrives first by the paper's
// estimate, srtt + B / (cwnd / srtt) with B the bytes in the send buffer,
// whether its congestion window has room or not (nikravesh2016 §4.3, "TxDelay").
//
// In the paper a message waits for its path in that path's send buffer, which is
// the case where send buffers are filled. With late binding it waits in the
// session, with all that waits there, so B is what they come to together: a path
// with room is left alone only if the last of them arrives earlier without.
type txDelay struct{}

func (txDelay) Place(m Message, paths []Path) Paths {
	best := least(paths, false, delay(m.Size))
	free := least(paths, true, delay(m.Size))
	if free < 0 || paths[best].Room > 0 {
		return One(best)
	}
	if delay(m.Size+m.Waiting)(&paths[best]) <= delay(m.Size)(&paths[free]) {
		return One(best)
	}
	return One(free)
}

// delay estimates when so many bytes more have arrived over a path, in seconds.
func delay(size int) func(*Path) float64 {
	return func(p *Path) float64 {
		if p.Window == 0 {
			return rtt(p)
		}
		return rtt(p) * (1 + float64(p.Queued+size)/float64(p.Window))
	}
}
