package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"mplab/internal/ifaces"
	"mplab/mpflex/internal/forward/relay"
)

// errLost: the address that a connection leaves from is the phone's no more.
var errLost = errors.New("the network of the connection is lost")

// networks ends connections of their own that cannot go on, as the address that
// they leave from is gone with its network. Android ends such sockets by itself
// (SOCK_DESTROY); elsewhere TCP would go on trying for minutes. The zero value
// ends nothing.
type networks struct {
	mu   sync.Mutex // guards what follows
	now  map[netip.Addr]string
	uses map[*use]bool
}

// use is one connection, from before it is opened to its end. Its context ends
// when the connection's network is lost, with that as the cause.
type use struct {
	context.Context
	cancel context.CancelCauseFunc
	of     *networks
	local  netip.Addr          // not valid before it is known
	lost   map[netip.Addr]bool // before it was known
}

// watch follows the interfaces until ctx ends, and returns then; told is told
// why that is not possible, or slow.
func (n *networks) watch(ctx context.Context, told func(error)) {
	set, err := ifaces.Watch(ctx, nil)
	if err != nil {
		told(fmt.Errorf("interfaces are not watched, connections over a lost network end by time: %w", err))
		return
	}
	if err := set.Polling(); err != nil {
		told(fmt.Errorf("interfaces are looked at once a second: %w", err))
	}
	n.take(set.Snapshot())
	for {
		select {
		case <-set.Done():
			return
		case <-set.Changed():
			n.take(set.Snapshot())
		}
	}
}

// take takes over what there is now, and ends what was over an address that has
// gone since the last time.
func (n *networks) take(snapshot []ifaces.Interface) {
	next := make(map[netip.Addr]string)
	for _, i := range snapshot {
		for _, a := range i.Addrs {
			next[a] = i.Name
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.now
	n.now = next
	for address, device := range before {
		if _, still := next[address]; still {
			continue
		}
		for u := range n.uses {
			u.lose(address, device)
		}
	}
}

// use begins a connection; it must be ended.
func (n *networks) use(ctx context.Context) *use {
	u := &use{of: n, lost: map[netip.Addr]bool{}}
	u.Context, u.cancel = context.WithCancelCause(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.uses == nil {
		n.uses = make(map[*use]bool)
	}
	n.uses[u] = true
	return u
}

// bound says which address the connection has got.
func (u *use) bound(local netip.Addr) {
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	if u.local = local.Unmap(); u.lost[u.local] {
		u.cancel(fmt.Errorf("%w: %s", errLost, u.local))
	}
}

// lose takes note of an address that has gone, with the networks locked.
func (u *use) lose(address netip.Addr, device string) {
	switch u.local {
	case netip.Addr{}:
		u.lost[address] = true
	case address:
		u.cancel(fmt.Errorf("%w: %s of %s", errLost, address, device))
	}
}

// end ends the use.
func (u *use) end() {
	u.cancel(nil)
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	delete(u.of.uses, u)
}

// ending is why a context ended, in the words of the log.
func ending(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errLost) {
		return cause
	}
	return relay.ErrShutdown
}
