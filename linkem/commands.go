package linkem

// The commands that the control socket gives to a link; they run on its thread.

// apply replaces the conditions of both directions and starts the random sequences again, with a new seed if one is given.
func (l *link) apply(now int64, up, down Params, seed *uint64) {
	if seed != nil {
		l.seed = *seed
	}
	l.config.Up, l.config.Down = up, down
	l.up.change(now, up, newFate(l.seed, l.config.Name, "up"))
	l.down.change(now, down, newFate(l.seed, l.config.Name, "down"))
}

func (l *link) state() linkState {
	return linkState{
		A: l.config.A, B: l.config.B, Seed: l.seed, Up: l.config.Up, Down: l.config.Down,
		DelayByPrefix: l.config.DelayByPrefix, Scheduling: l.how,
	}
}

func (l *link) count(now int64) linkCounters {
	counters := linkCounters{Up: l.up.countersAt(now), Down: l.down.countersAt(now)}
	counters.Up.KernelDropped, counters.Up.OversizeFrames = l.a.dropped(), l.a.oversize
	counters.Down.KernelDropped, counters.Down.OversizeFrames = l.b.dropped(), l.b.oversize
	return counters
}
