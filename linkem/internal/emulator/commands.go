package emulator

import (
	"mplab/linkem/internal/config"
	"mplab/linkem/model"
)

// Commands of the control socket for a link; they run on its thread.

// apply replaces the conditions of both directions. Unless the request continues, it restarts the random sequences,
// with a new seed if one is given.
func (l *link) apply(now int64, asked config.Request) {
	l.config.Up, l.config.Down = asked.Up, asked.Down
	if asked.Continues {
		l.up.Change(now, asked.Up, nil)
		l.down.Change(now, asked.Down, nil)
		return
	}
	if asked.Seed != nil {
		l.seed = *asked.Seed
	}
	l.up.Change(now, asked.Up, model.NewChance(l.seed, l.config.Name, "up"))
	l.down.Change(now, asked.Down, model.NewChance(l.seed, l.config.Name, "down"))
}

func (l *link) state() LinkState {
	return LinkState{
		A: l.config.A, B: l.config.B, Seed: l.seed, Up: l.config.Up, Down: l.config.Down,
		DelayByPrefix: l.config.DelayByPrefix, Scheduling: l.how,
	}
}

func (l *link) count(now int64) LinkCounters {
	counters := LinkCounters{Up: l.up.CountersAt(now), Down: l.down.CountersAt(now)}
	counters.Up.KernelDropped, counters.Up.OversizeFrames = l.a.Dropped(), l.a.Oversize
	counters.Down.KernelDropped, counters.Down.OversizeFrames = l.b.Dropped(), l.b.Oversize
	return counters
}
