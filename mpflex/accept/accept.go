// Package accept runs a listener: a goroutine a connection, a bounded number
// of them, and an end that waits for all.
package accept

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"mplab/mpflex/netx"
)

// retryPause is how long accepting rests after an error that passes (no more
// descriptors, a connection that died in the queue).
const retryPause = 20 * time.Millisecond

// Group is a bounded set of connections being served, over any number of
// listeners.
type Group struct {
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
	for {
		conn, err := listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(retryPause)
			continue
		}
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
