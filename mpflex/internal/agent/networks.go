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

// errLost reports that the phone no longer has the connection's local address.
var errLost = errors.New("the network of the connection is lost")

// networks ends carrying connections whose local address has disappeared with its
// network. Android ends such sockets itself (SOCK_DESTROY). On other systems TCP would
// retry for minutes. The zero value ends nothing.
type networks struct {
	mu   sync.Mutex // guards the fields below
	now  map[netip.Addr]string
	uses map[*use]bool
}

// use is one connection, from before it is opened to its end. Its context ends with
// errLost as the cause when its network is lost.
type use struct {
	context.Context
	cancel context.CancelCauseFunc
	of     *networks
	local  netip.Addr          // invalid until it is known
	lost   map[netip.Addr]bool // addresses lost before local was known
}

// watch watches the interfaces until ctx ends. It calls report if it cannot watch them,
// or only with a delay.
func (n *networks) watch(ctx context.Context, report func(error)) {
	set, err := ifaces.Watch(ctx, nil)
	if err != nil {
		report(fmt.Errorf("interfaces are not watched, connections over a lost network end by time: %w", err))
		return
	}
	if err := set.Polling(); err != nil {
		report(fmt.Errorf("interfaces are polled once a second: %w", err))
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

// take stores the current addresses and ends the connections whose address has
// disappeared.
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

// use starts a connection. The caller must end it.
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

// bound sets the local address of the connection.
func (u *use) bound(local netip.Addr) {
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	if u.local = local.Unmap(); u.lost[u.local] {
		u.cancel(fmt.Errorf("%w: %s", errLost, u.local))
	}
}

// lose handles a lost address. The networks must be locked.
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

// ending returns the reason of a context's end, as the log states it.
func ending(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errLost) {
		return cause
	}
	return relay.ErrShutdown
}
