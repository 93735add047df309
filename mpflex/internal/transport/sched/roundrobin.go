package sched

func init() { register("roundrobin", func() Scheduler { return &roundRobin{} }) }

// roundRobin uses the paths with room in turn.
type roundRobin struct{ last uint8 }

func (r *roundRobin) Place(_ Message, paths []Path) Paths {
	i := least(paths, true, func(p *Path) float64 { return float64(p.ID - r.last - 1) }) // distance from the last, modulo 256
	if i >= 0 {
		r.last = paths[i].ID
	}
	return One(i)
}
