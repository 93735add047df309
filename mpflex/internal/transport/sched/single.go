package sched

func init() { register("single", func() Scheduler { return single{} }) }

// single uses the path with the lowest number. It uses another one only while that is
// stalled or gone.
type single struct{}

func (single) pinned() {}

func (single) Place(_ Message, paths []Path) Paths {
	return One(least(paths, false, func(p *Path) float64 { return float64(p.ID) }))
}
