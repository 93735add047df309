package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/internal/transport/downlink"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/wire"
)

// visit is a carrying connection of a client, from its hello to its end.
type visit struct {
	conn   *net.TCPConn
	hello  wire.Hello
	client identity.Client

	ctx   context.Context // ends with the proxy, or if the client is removed
	leave func()
}

// enter counts the connection for its client.
func (p *Proxy) enter(ctx context.Context, v *visit) error {
	if !p.connections.Take(v.client.ID, 0) {
		return fmt.Errorf("the client's limit of %d connections is reached", p.connections.Most)
	}
	var end context.CancelCauseFunc
	v.ctx, end = context.WithCancelCause(ctx)
	remove := p.carriers.add(v.client, end)
	v.leave = func() {
		remove()
		end(nil)
		p.connections.Give(v.client.ID)
	}
	if !p.known.Knows(v.client) { // removed in the meantime
		v.leave()
		return downlink.ErrRemoved
	}
	return nil
}

// answer sends a status.
func (v visit) answer(status wire.Status) error {
	_, err := v.conn.Write(status.Append(nil, v.client.Secret, v.hello.Nonce))
	return err
}

// ended returns the reason why the visit ends.
func (v visit) ended() error {
	if cause := context.Cause(v.ctx); errors.Is(cause, downlink.ErrRemoved) {
		return cause
	}
	return relay.ErrShutdown
}

// carriers holds the open carrying connections and the functions that end them.
type carriers struct {
	mu   sync.Mutex
	open map[*carrying]struct{}
}

type carrying struct {
	client identity.Client
	end    context.CancelCauseFunc
}

func (c *carriers) add(client identity.Client, end context.CancelCauseFunc) (remove func()) {
	one := &carrying{client, end}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[*carrying]struct{})
	}
	c.open[one] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, one)
	}
}

// endUnknown ends the connections of removed clients.
func (c *carriers) endUnknown(known func(identity.Client) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.open {
		if !known(one.client) {
			one.end(downlink.ErrRemoved)
		}
	}
}
