package accept

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"mplab/internal/netx"
)

// firstPause and lastPause are how long accepting rests after an error that
// passes: no more descriptors, no memory. Connections wait in the kernel's queue
// meanwhile.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// Group is a bounded set of connections being served, over any number of
// listeners.
type Group struct {
	// Failed, when set, returns what is told of each failure to accept on a
	// listener. It is not changed once the group serves.
	Failed func(*net.TCPListener) func(error)

	slots chan struct{}
	wait  sync.WaitGroup
}

// NewGroup returns a group of at most limit connections.
func NewGroup(limit int) *Group { return &Group{slots: make(chan struct{}, limit)} }

// Serve accepts until ctx ends, then closes the listener. Each connection is
// given to handle, which owns it, or when the group is full to over, which
// must not block; it is reset after that.
func (g *Group) Serve(ctx context.Context, listener *net.TCPListener, handle, over func(*net.TCPConn)) {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	failed := func(error) {}
	if g.Failed != nil {
		failed = g.Failed(listener)
	}
	pause := firstPause
	for {
		conn, err := listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, syscall.ECONNABORTED): // it died in the queue
			continue
		case err != nil:
			failed(err)
			rest(ctx, pause)
			pause = min(2*pause, lastPause)
			continue
		}
		pause = firstPause
		if ctx.Err() != nil {
			netx.Abort(conn)
			return
		}
		select {
		case g.slots <- struct{}{}:
		default:
			over(conn)
			netx.Abort(conn)
			continue
		}
		g.wait.Go(func() {
			defer func() { <-g.slots }()
			handle(conn)
		})
	}
}

// rest waits, at most until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Go runs f as part of the group, outside its limit.
func (g *Group) Go(f func()) { g.wait.Go(f) }

// Wait waits for all of the group, at most so long, and tells whether all have
// ended.
func (g *Group) Wait(limit time.Duration) bool {
	done := make(chan struct{})
	go func() {
		g.wait.Wait()
		close(done)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
