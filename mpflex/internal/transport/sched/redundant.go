package sched

func init() { register("redundant", func() Scheduler { return redundant{} }) }

// small is the stream length, in bytes, up to which all paths are used.
const small = 16 << 10

// redundant sends short streams on all paths. The copy that arrives first counts.
// Messages of longer streams use the path with the lowest RTT.
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
