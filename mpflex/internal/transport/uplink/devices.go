package uplink

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"mplab/internal/ifaces"
)

// changeError is the reason why an interface cannot carry a path, or why it must be set
// up again.
type changeError struct{ why string }

func (e *changeError) Error() string { return e.why }

// device is the state of an interface, as far as paths need it.
type device struct {
	there bool // up, with carrier and an address of any family
	index int
	addrs []netip.Addr // of the proxy's family, sorted
	route bool         // a default route of that family
}

func (d device) equal(other device) bool {
	return d.there == other.there && d.index == other.index && d.route == other.route && slices.Equal(d.addrs, other.addrs)
}

// devices knows which interfaces can carry paths, and ends the leases of those that no
// longer can. Interfaces that are not watched, and paths without an interface, may
// always be tried.
type devices struct {
	family string // IPv4 or IPv6: the proxy's family
	is     func(netip.Addr) bool
	names  []string // of the watched interfaces

	mu      sync.Mutex // guards the fields below
	watched bool
	now     map[string]device
	changed map[string]chan struct{} // closed when the device changes
	leases  map[*lease]bool
}

// newDevices returns the devices of paths to a proxy.
func newDevices(proxy netip.Addr, paths []Path) *devices {
	d := &devices{
		family: "IPv4", is: netip.Addr.Is4, now: map[string]device{}, changed: map[string]chan struct{}{}, leases: map[*lease]bool{},
	}
	if !proxy.Unmap().Is4() {
		d.family, d.is = "IPv6", netip.Addr.Is6
	}
	if proxy.IsLinkLocalUnicast() {
		return d // the addresses from which it is reached are not listed
	}
	for _, p := range paths {
		if p.Device != "" {
			d.names = append(d.names, p.Device)
			d.changed[p.Device] = make(chan struct{})
		}
	}
	return d
}

// escape turns a name into a pattern (path.Match) that matches only the name.
var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// watch watches the interfaces until ctx ends. The returned function waits for its end.
// An error states why changes are noticed late or not at all.
func (d *devices) watch(ctx context.Context) (wait func(), err error) {
	if len(d.names) == 0 {
		return func() {}, nil
	}
	patterns := make([]string, len(d.names))
	for i, name := range d.names {
		patterns[i] = escape.Replace(name)
	}
	set, err := ifaces.Watch(ctx, patterns)
	if err != nil {
		return func() {}, fmt.Errorf("interfaces are not watched, paths are tried by time: %w", err)
	}
	d.take(set.Snapshot())
	var following sync.WaitGroup
	following.Go(func() {
		for {
			select {
			case <-set.Done():
				return
			case <-set.Changed():
				d.take(set.Snapshot())
			}
		}
	})
	if err = set.Polling(); err != nil {
		err = fmt.Errorf("interfaces are polled once a second: %w", err)
	}
	return following.Wait, err
}

// take replaces the state of all interfaces and checks the leases.
func (d *devices) take(snapshot []ifaces.Interface) {
	next := map[string]device{}
	for _, i := range snapshot {
		one := device{there: true, index: i.Index, route: i.DefaultIPv4}
		if d.family == "IPv6" {
			one.route = i.DefaultIPv6
		}
		for _, a := range i.Addrs {
			if d.is(a) {
				one.addrs = append(one.addrs, a)
			}
		}
		next[i.Name] = one
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.now
	d.watched, d.now = true, next
	for name, changed := range d.changed {
		if !before[name].equal(next[name]) {
			close(changed)
			d.changed[name] = make(chan struct{})
		}
	}
	for l := range d.leases {
		l.look(next[l.name])
	}
}

// unfit returns why a device cannot carry a path, or nil if it can.
func (d *devices) unfit(one device) error {
	switch {
	case !one.there:
		return &changeError{"the interface is not there, down, without carrier or without an address"}
	case len(one.addrs) == 0:
		return &changeError{"the interface has no " + d.family + " address, which the proxy has"}
	}
	return nil
}

// lease is the use of a device by one connection. Its context ends with a *changeError
// as the cause when the device can no longer carry the connection.
type lease struct {
	context.Context
	cancel  context.CancelCauseFunc
	changed <-chan struct{} // closed when the device has changed since the lease started; nil: never

	of    *devices
	name  string
	seen  device     // the device at its last change
	local netip.Addr // address of the connection; invalid until it is known

	stop func() bool // stops the function that runs when the context ends; nil: none
}

// use starts the use of a device; "" means the device that the routes select. The error
// is a *changeError if the device cannot be used now. The lease's changed channel then
// reports the next change. The caller must release the lease.
func (d *devices) use(ctx context.Context, name string) (*lease, error) {
	l := &lease{of: d, name: name}
	l.Context, l.cancel = context.WithCancelCause(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.watched || d.changed[name] == nil {
		return l, nil
	}
	l.changed, l.seen = d.changed[name], d.now[name]
	if err := d.unfit(l.seen); err != nil {
		return l, err
	}
	d.leases[l] = true
	return l, nil
}

// bound sets the address of the connection.
func (l *lease) bound(local netip.Addr) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.local = local.Unmap()
}

// look compares a device with its state before the change. The devices must be locked.
func (l *lease) look(now device) {
	before := l.seen
	l.seen = now
	if err := l.of.unfit(now); err != nil {
		l.cancel(err)
		return
	}
	if now.index != before.index {
		l.cancel(&changeError{"the interface was created again"})
		return
	}
	if !l.local.IsValid() && !before.route && now.route {
		// A connection that was started without a route waits for the proxy in vain,
		// for seconds.
		l.cancel(&changeError{"the interface has got a default route"})
		return
	}
	for _, a := range before.addrs {
		if (!l.local.IsValid() || l.local == a) && !slices.Contains(now.addrs, a) {
			l.cancel(&changeError{fmt.Sprintf("the interface has lost the address %s", a)})
			return
		}
	}
}

// done releases a lease, or does nothing if l is nil.
func (l *lease) done() {
	if l == nil {
		return
	}
	if l.stop != nil {
		l.stop()
	}
	l.release()
}

// lost reports whether a lease has ended because of its device.
func lost(l *lease) bool {
	var change *changeError
	return errors.As(context.Cause(l), &change)
}

// release ends the use.
func (l *lease) release() {
	l.cancel(nil)
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	delete(l.of.leases, l)
}
