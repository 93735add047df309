package proxy

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"mplab/mpflex/config"
)

// ownAddressesAge bounds for how long the list of the machine's addresses is used.
const ownAddressesAge = time.Second

// reach decides which destinations are dialled: those of the allow list, except that
// a wide rule opens neither the proxy's own machine nor its listeners.
type reach struct {
	allow     config.Allow
	listeners []netip.AddrPort // set before the first connection is accepted

	mu   sync.Mutex // guards what follows
	own  map[netip.Addr]bool
	read time.Time // when own was read
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
	case !r.allow.Permits(destination): // most often, so first
		return false
	case r.listens(destination):
		return r.allow.Names(destination, true)
	case r.isOwn(destination.Addr()):
		return r.allow.Names(destination, false)
	}
	return true
}

// denied is why a destination is not permitted.
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

// isOwn reports whether an address, other than one of the loopback interface's own
// range, is the machine's.
func (r *reach) isOwn(ip netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) > ownAddressesAge {
		r.read = time.Now()
		if own, err := ownAddresses(); err == nil { // else, for lack of descriptors, the former list
			r.own = own
		}
	}
	return r.own[ip]
}

// ownAddresses returns the addresses of all interfaces. Loopback is left out: rules
// within its range open it.
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
