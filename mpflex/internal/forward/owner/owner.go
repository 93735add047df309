package owner

import (
	"net/netip"
	"sync"
	"time"
)

// Owner is a program on this machine.
type Owner struct {
	UID     int64 // -1: unknown
	PID     int   // -1: unknown
	Process string
}

// Unknown is the owner of a connection whose program was not found.
var Unknown = Owner{UID: -1, PID: -1}

// queueLength bounds the waiting searches. The result of further ones is Unknown.
const queueLength = 4096

// Finder searches owners, one at a time, in a separate goroutine.
type Finder struct {
	queue  chan *Search
	proc   procFinder
	stop   chan struct{}
	closed sync.Once
}

// Search is one search, running or ended.
type Search struct {
	local, remote netip.AddrPort
	done          chan struct{}
	owner         Owner
}

// NewFinder starts a finder. Close ends it.
func NewFinder() *Finder {
	f := &Finder{queue: make(chan *Search, queueLength), stop: make(chan struct{}), proc: procFinder{root: "/proc"}}
	go f.run()
	return f
}

// Close ends the finder. Waiting searches stay unknown.
func (f *Finder) Close() { f.closed.Do(func() { close(f.stop) }) }

// Find starts the search for the owner of the local socket with these addresses. It
// does not block.
func (f *Finder) Find(local, remote netip.AddrPort) *Search {
	search := &Search{local: local, remote: remote, done: make(chan struct{}), owner: Unknown}
	select {
	case f.queue <- search:
	default:
		close(search.done)
	}
	return search
}

// Wait returns the result, or Unknown if the search takes longer than limit. A nil
// search is Unknown.
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
	if inode != 0 { // 0: the application has already closed the socket
		owner.PID, owner.Process = f.proc.find(inode)
	}
	return owner
}
