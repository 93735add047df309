package proxy

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"mplab/mpflex/config"
)

// ownAddressesAge is how long the list of the machine's addresses is used.
const ownAddressesAge = time.Second

// reach decides which destinations are dialled: those of the allow list. A wide rule
// does not permit the proxy's own machine or its listeners.
type reach struct {
	allow     config.Allow
	listeners []netip.AddrPort // set before the first connection is accepted

	mu   sync.Mutex // guards the fields below
	own  map[netip.Addr]bool
	read time.Time // time of reading own
}

// newReach reads the addresses of the machine.
func newReach(allow config.Allow) (*reach, error) {
	own, err := ownAddresses()
	if err != nil {
		return nil, fmt.Errorf("reading the addresses of this machine: %w", err)
	}
	return &reach{allow: allow, own: own, read: time.Now()}, nil
}

// permits reports whether a destination may be dialled.
func (r *reach) permits(destination netip.AddrPort) bool {
	destination = netip.AddrPortFrom(destination.Addr().Unmap(), destination.Port())
	switch {
	case !r.allow.Permits(destination): // the most common case
		return false
	case r.listens(destination):
		return r.allow.Names(destination, true)
	case r.isOwn(destination.Addr()):
		return r.allow.Names(destination, false)
	}
	return true
}

// denied returns the reason why a destination is not permitted.
func (r *reach) denied(destination netip.AddrPort) error {
	if r.allow.Permits(destination) {
		return fmt.Errorf("destination %s is on the proxy's own machine; only a rule for exactly that address opens it", destination)
	}
	return fmt.Errorf("destination %s is not in the allow list", destination)
}

// listens reports whether a destination is a listener of the proxy.
func (r *reach) listens(destination netip.AddrPort) bool {
	ip := destination.Addr()
	for _, l := range r.listeners {
		if l.Port() == destination.Port() && (l.Addr() == ip || l.Addr().IsUnspecified() && (ip.IsUnspecified() || ip.IsLoopback() || r.isOwn(ip))) {
			return true
		}
	}
	return false
}

// isOwn reports whether an address belongs to the machine. Loopback addresses do not
// count.
func (r *reach) isOwn(ip netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) > ownAddressesAge {
		r.read = time.Now()
		if own, err := ownAddresses(); err == nil { // otherwise, e.g. without free descriptors, keep the old list
			r.own = own
		}
	}
	return r.own[ip]
}

// ownAddresses returns the addresses of all interfaces except loopback addresses. The
// allow list permits these only by rules within the loopback range.
func ownAddresses() (map[netip.Addr]bool, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	own := make(map[netip.Addr]bool, len(all))
	for _, a := range all {
		if network, ok := a.(*net.IPNet); ok && !network.IP.IsLoopback() {
			ip, _ := netip.AddrFromSlice(network.IP)
			own[ip.Unmap()] = true
		}
	}
	return own, nil
}
