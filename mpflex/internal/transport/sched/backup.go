package sched

func init() { register("backup", func() Scheduler { return backup{} }) }

// backup uses the first path. It uses another one only while that is stalled or gone.
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
