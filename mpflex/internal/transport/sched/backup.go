package sched

func init() { register("backup", func() Scheduler { return backup{} }) }

// backup takes the first path; the others wait for it to stall or to go.
type backup struct{}

func (backup) pinned() {}

func (backup) Place(_ Message, paths []Path) Paths {
	return One(least(paths, false, func(p *Path) float64 {
		if p.Backup {
			return float64(p.ID) + 256
		}
		return float64(p.ID)
	}))
}
