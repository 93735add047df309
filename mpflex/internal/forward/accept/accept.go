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

// firstPause and lastPause bound the pause after an error that may pass, such as a lack
// of descriptors or memory. Connections wait in the kernel's queue during the pause.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// Group is a bounded set of served connections, from any number of listeners.
type Group struct {
	// Failed, if set, returns a function that is called for each failure to accept on a
	// listener. Do not change it once the group serves.
	Failed func(*net.TCPListener) func(error)

	slots chan struct{}
	wait  sync.WaitGroup
}

// NewGroup returns a group of at most limit connections.
func NewGroup(limit int) *Group { return &Group{slots: make(chan struct{}, limit)} }

// Serve accepts connections until ctx ends, then closes the listener. handle owns the
// connection that it gets. If the group is full, Serve calls over instead, which must
// not block, and resets the connection.
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
		case errors.Is(err, syscall.ECONNABORTED): // it was reset in the queue
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

// rest waits for d or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Go runs f as part of the group. It does not count towards the limit.
func (g *Group) Go(f func()) { g.wait.Go(f) }

// Wait waits until all of the group have ended, for at most limit. It reports whether
// all have ended.
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
