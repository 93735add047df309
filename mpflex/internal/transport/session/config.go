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

// Config holds the settings of a session. A zero value selects the default. The bounds
// apply to the data that this side accepts. [Session.SetPeer] sets the bounds of the
// other side.
type Config struct {
	Window        int           // receive window of a stream, in bytes; default 4 MiB
	InitialWindow int           // bytes of Window that the other side may send before an acknowledgement; default 256 KiB
	Memory        int           // received bytes, not yet read, of all streams, above which windows shrink; default 64 MiB
	MaxStreams    int           // open streams of both sides; default 16384
	Scheduler     string        // of streams without their own scheme; see package sched
	SendBuffer    int           // bytes that a path's TCP may hold unacknowledged (nikravesh2016 §4.3); 0: late binding
	PathTimeout   time.Duration // the session ends after this time without a path; default 60 s
	Keepalive     time.Duration // longest silence of a path while streams are open; then it is pinged; default 15 s
	Reinjection   Reinjection
	Budget        *Budget  // of memory, shared with other sessions; default: a separate one of 512 MiB
	Account       *Account // of the client in a budget; default: the session may use the whole Budget
	// Incoming counts the streams that the other side opens, from their first frame.
	// The code that accepts a stream must call Give when the stream ends. Take is
	// called with the session locked and must not block. nil: no limit.
	Incoming Quota
	// Log receives the events of the paths and the end of the session, one at a time
	// and in order. It runs in a goroutine that Close waits for. It may use the
	// session, but must not close it. nil: no log.
	Log func(Event)
}

// Quota bounds a number of streams.
type Quota interface {
	Take() bool
	Give()
}

// Reinjection selects the copies that are made of late messages. The zero value enables
// all of them.
type Reinjection struct {
	NoTail   bool    // do not copy the last messages of a stream, even if another path is free and faster
	NoStall  bool    // do not copy the messages of a stalled path
	NoBuffer bool    // do not copy the message that a full reordering buffer waits for
	Eta      float64 // part of the window that counts as full: nikravesh2016 §4.4; default 0.75
	Share    float64 // maximum bytes of tail copies, as a part of all bytes sent; default 0.05
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

// Scheme defines how the messages of a stream are spread over the paths.
type Scheme struct {
	Scheduler sched.Scheduler
	Paths     func(name string) (allowed, backup bool) // nil: all paths; Link.Backup marks the backups
}

// Peer holds the bounds of the other side. This side must obey them as a sender.
type Peer struct {
	InitialWindow int // of each stream before its first acknowledgement, in bytes
	MaxStreams    int // open streams of this side
}
