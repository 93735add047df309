package session

import (
	"time"

	"mplab/mpflex/internal/transport/sched"
)

// Role is the side of a session.
type Role uint8

// The two sides. Streams of the agent have odd numbers.
const (
	Agent Role = iota
	Proxy
)

// Config are the settings of a session. Zero values stand for the defaults.
// They bound the data that this side accepts. [Session.SetPeer] sets the bounds
// of the other side.
type Config struct {
	Window        int           // bytes of a stream that may be under way before the reader has taken them; default 4 MiB
	InitialWindow int           // of Window, what the other side may send of a stream unasked; default 256 KiB
	Memory        int           // received bytes of all streams that may wait before windows shrink; default 64 MiB
	MaxStreams    int           // streams at a time, those of this side included; default 16384
	Scheduler     string        // of streams without a scheme of their own; see package sched
	SendBuffer    int           // bytes that the TCP of each path is given without an acknowledgement, whatever its window (nikravesh2016 §4.3); 0: late binding
	PathTimeout   time.Duration // without any path for so long the session ends; default 60 s
	Keepalive     time.Duration // how long a path may be silent while there are streams; default 15 s
	Reinjection   Reinjection
	Budget        *Budget  // of memory, shared with other sessions; default: one of its own, of 512 MiB
	Account       *Account // of the client in a budget; default: the session may use all of Budget
	// Incoming counts the streams that the other side opens, from their first
	// frame on. Who accepts a stream gives its place back. It is called with the
	// session locked and must not block. nil: they are not counted.
	Incoming Quota
	// Log is told what happens to the paths, and how the session ended: one event
	// after the other in their order, in a goroutine of its own, which Close waits
	// for. It may use the session, but not close it. nil: nobody is told.
	Log func(Event)
}

// Quota bounds a number of streams.
type Quota interface {
	Take() bool
	Give()
}

// Reinjection says which copies are made of messages that are late. The zero
// value switches all on.
type Reinjection struct {
	NoTail   bool    // not of the last messages, when another path is free and would be faster
	NoStall  bool    // not of what a path holds that makes no progress
	NoBuffer bool    // not of the message that a full reordering buffer waits for
	Eta      float64 // how full: nikravesh2016 §4.4; default 0.75
	Share    float64 // most bytes of tail copies, as a share of all; default 0.05
}

const (
	defaultWindow        = 4 << 20
	defaultInitialWindow = 256 << 10
	defaultMemory        = 64 << 20
	defaultMaxStreams    = 16384
	defaultPathTimeout   = 60 * time.Second
	defaultKeepalive     = 15 * time.Second
	defaultEta           = 0.75
	defaultShare         = 0.05
	defaultBudget        = 512 << 20
)

func (c *Config) complete() {
	set(&c.Window, defaultWindow)
	set(&c.InitialWindow, defaultInitialWindow)
	set(&c.Memory, defaultMemory)
	set(&c.MaxStreams, defaultMaxStreams)
	set(&c.PathTimeout, defaultPathTimeout)
	set(&c.Keepalive, defaultKeepalive)
	set(&c.Reinjection.Eta, defaultEta)
	set(&c.Reinjection.Share, defaultShare)
	c.InitialWindow = min(c.InitialWindow, c.Window)
	if c.Budget == nil {
		c.Budget = NewBudget(defaultBudget, nil)
	}
	if c.Account == nil {
		c.Account = c.Budget.account("", 1)
	}
	c.Budget = c.Account.budget
}

func set[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// Scheme says how the messages of a stream are spread over the paths.
type Scheme struct {
	Scheduler sched.Scheduler
	Paths     func(name string) (allowed, backup bool) // nil: all, none a backup
}

// Peer are the bounds of the other side, which this side must obey as a sender.
type Peer struct {
	InitialWindow int // bytes of each stream before its first acknowledgement
	MaxStreams    int // streams of this side at a time
}
