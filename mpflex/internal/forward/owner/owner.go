package owner

import (
	"net/netip"
	"sync"
	"time"
)

// Owner is a program on this machine.
type Owner struct {
	UID     int64 // -1 when unknown
	PID     int   // -1 when unknown
	Process string
}

// Unknown is the owner of a connection that could not be attributed.
var Unknown = Owner{UID: -1, PID: -1}

// queueLength bounds the searches that wait; further ones stay unknown.
const queueLength = 4096

// Finder searches owners, one after the other, in a goroutine of its own.
type Finder struct {
	queue  chan *Search
	proc   procFinder
	stop   chan struct{}
	closed sync.Once
}

// Search is one search, under way or ended.
type Search struct {
	local, remote netip.AddrPort
	done          chan struct{}
	owner         Owner
}

// NewFinder starts a finder; Close ends it.
func NewFinder() *Finder {
	f := &Finder{queue: make(chan *Search, queueLength), stop: make(chan struct{}), proc: procFinder{root: "/proc"}}
	go f.run()
	return f
}

// Close ends the finder. Searches that wait stay unknown.
func (f *Finder) Close() { f.closed.Do(func() { close(f.stop) }) }

// Find starts the search for the owner of the local socket with these
// addresses and returns at once.
func (f *Finder) Find(local, remote netip.AddrPort) *Search {
	search := &Search{local: local, remote: remote, done: make(chan struct{}), owner: Unknown}
	select {
	case f.queue <- search:
	default:
		close(search.done)
	}
	return search
}

// Wait returns the result, waiting at most so long for it. A nil search is
// unknown.
func (s *Search) Wait(limit time.Duration) Owner {
	if s == nil {
		return Unknown
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.done:
		return s.owner
	case <-timer.C:
		return Unknown
	}
}

func (f *Finder) run() {
	for {
		select {
		case <-f.stop:
			return
		case search := <-f.queue:
			search.owner = f.find(search)
			close(search.done)
		}
	}
}

func (f *Finder) find(search *Search) Owner {
	uid, inode, err := diagnose(search.local, search.remote)
	if err != nil {
		return Unknown
	}
	owner := Owner{UID: int64(uid), PID: -1}
	if inode != 0 { // 0: the application closed the socket already
		owner.PID, owner.Process = f.proc.find(inode)
	}
	return owner
}
