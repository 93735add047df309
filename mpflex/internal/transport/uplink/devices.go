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

// changeError is why an interface cannot carry a path, or not the one that was
// begun.
type changeError struct{ why string }

func (e *changeError) Error() string { return e.why }

// device is an interface as it matters to a path.
type device struct {
	there bool // up, with its carrier and an address of some family
	index int
	addrs []netip.Addr // of the proxy's family, sorted
	route bool         // a default route of that family
}

func (d device) equal(other device) bool {
	return d.there == other.there && d.index == other.index && d.route == other.route && slices.Equal(d.addrs, other.addrs)
}

// devices know which interfaces can carry paths now, and end what is done over
// one that cannot any more. Where interfaces are not watched, and for paths that
// are bound to none, every try is allowed.
type devices struct {
	family string // IPv4, IPv6: the proxy's
	is     func(netip.Addr) bool
	names  []string // that are watched

	mu      sync.Mutex // guards what follows
	watched bool
	now     map[string]device
	changed map[string]chan struct{} // closed when the device changes
	leases  map[*lease]bool
}

// newDevices are those of paths to a proxy.
func newDevices(proxy netip.Addr, paths []Path) *devices {
	d := &devices{
		family: "IPv4", is: netip.Addr.Is4, now: map[string]device{}, changed: map[string]chan struct{}{}, leases: map[*lease]bool{},
	}
	if !proxy.Unmap().Is4() {
		d.family, d.is = "IPv6", netip.Addr.Is6
	}
	if proxy.IsLinkLocalUnicast() {
		return d // is reached from addresses that are not listed
	}
	for _, p := range paths {
		if p.Device != "" {
			d.names = append(d.names, p.Device)
			d.changed[p.Device] = make(chan struct{})
		}
	}
	return d
}

// escape makes a pattern (path.Match) of a name.
var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// watch looks after the interfaces until ctx ends; what it returns waits for
// that. The error says why changes are not noticed at once, or not at all.
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
		err = fmt.Errorf("interfaces are looked at once a second: %w", err)
	}
	return following.Wait, err
}

// take takes over what there is now.
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

// unfit says why a device cannot carry a path; nil when it can.
func (d *devices) unfit(one device) error {
	switch {
	case !one.there:
		return &changeError{"the interface is not there, down, without carrier or without an address"}
	case len(one.addrs) == 0:
		return &changeError{"the interface has no " + d.family + " address, which the proxy has"}
	}
	return nil
}

// lease is the use of a device by one connection. Its context ends with a
// *changeError as cause when the device cannot carry it any more.
type lease struct {
	context.Context
	cancel  context.CancelCauseFunc
	changed <-chan struct{} // closed when the device has changed since the lease began; nil: never

	of    *devices
	name  string
	seen  device     // the device at its last change
	local netip.Addr // of the connection; not valid before it is known

	stop func() bool // what is to be done when the context ends; nil: nothing
}

// use begins to use a device; "": whichever the routes say. The error, when it
// cannot be used now, is a *changeError; the lease tells when it has changed.
// It must be released.
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

// bound says which address the connection has.
func (l *lease) bound(local netip.Addr) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.local = local.Unmap()
}

// look compares the device with what it was, with the devices locked.
func (l *lease) look(now device) {
	before := l.seen
	l.seen = now
	if err := l.of.unfit(now); err != nil {
		l.cancel(err)
		return
	}
	if now.index != before.index {
		l.cancel(&changeError{"the interface was made anew"})
		return
	}
	if !l.local.IsValid() && !before.route && now.route {
		// What was begun without a route looks for the proxy in vain, for seconds.
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

// done releases a lease, if there is one, whose path has ended or is replaced.
func (l *lease) done() {
	if l == nil {
		return
	}
	if l.stop != nil {
		l.stop()
	}
	l.release()
}

// lost says whether a lease has ended because of its device.
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
