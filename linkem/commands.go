package linkem

// The commands that the control socket gives to a link; they run on its thread.

// apply replaces the conditions of both directions. Unless it continues, it starts the random sequences again, with a new
// seed if one is given.
func (l *link) apply(now int64, asked request) {
	l.config.Up, l.config.Down = asked.up, asked.down
	if asked.continues {
		l.up.change(now, asked.up, nil)
		l.down.change(now, asked.down, nil)
		return
	}
	if asked.seed != nil {
		l.seed = *asked.seed
	}
	l.up.change(now, asked.up, newChance(l.seed, l.config.Name, "up"))
	l.down.change(now, asked.down, newChance(l.seed, l.config.Name, "down"))
}

func (l *link) state() linkState {
	return linkState{
		A: l.config.A, B: l.config.B, Seed: l.seed, Up: l.config.Up, Down: l.config.Down,
		DelayByPrefix: l.config.DelayByPrefix, Scheduling: l.how,
	}
}

func (l *link) count(now int64) linkCounters {
	counters := linkCounters{Up: l.up.countersAt(now), Down: l.down.countersAt(now)}
	counters.Up.KernelDropped, counters.Up.OversizeFrames = l.a.dropped(), l.a.Oversize
	counters.Down.KernelDropped, counters.Down.OversizeFrames = l.b.dropped(), l.b.Oversize
	return counters
}
