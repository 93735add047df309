package sched

func init() { register("txdelay", func() Scheduler { return txDelay{} }) }

// txDelay chooses the path on which the message arrives first by the paper's estimate,
// srtt + B / (cwnd / srtt), where B is the number of bytes in the send buffer. The path
// is chosen even if its congestion window is full (nikravesh2016 §4.3, "TxDelay").
//
// In the paper a message waits in the send buffer of its path. With late binding it
// waits in the session, together with all other unsent bytes, so B includes these. A
// path with room stays unused only if the last of these bytes would still arrive
// earlier on the other path.
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

// delay returns a function that estimates, in seconds, when size more bytes have
// arrived over a path.
func delay(size int) func(*Path) float64 {
	return func(p *Path) float64 {
		if p.Window == 0 {
			return rtt(p)
		}
		return rtt(p) * (1 + float64(p.Queued+size)/float64(p.Window))
	}
}
