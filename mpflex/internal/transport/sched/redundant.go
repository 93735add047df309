package sched

func init() { register("redundant", func() Scheduler { return redundant{} }) }

// small is up to which offset a stream counts as small messages.
const small = 16 << 10

// redundant sends small messages on all paths: the first copy that arrives
// counts. What follows in longer streams goes to the path with the least round
// trip.
type redundant struct{}

func (redundant) Place(m Message, paths []Path) Paths {
	if m.Sent+uint64(m.Size+m.Left) > small {
		return minRTT{}.Place(m, paths)
	}
	ok, all := usable(paths), Paths(0)
	for i := range paths {
		if ok(&paths[i]) {
			all |= One(i)
		}
	}
	return all
}
