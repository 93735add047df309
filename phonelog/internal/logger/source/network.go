package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"mplab/internal/ifaces"
	"mplab/phonelog/internal/logger/record"
)

// dumpTries is the number of attempts to read a list that changes during the
// read.
const dumpTries = 3

// addressesMost is the maximum number of addresses of an interface in a record.
const addressesMost = 256

// Network reads interfaces, addresses and default routes: usable interfaces
// from package ifaces, and all others from netlink. An application on Android
// 11 or later may not list the links; then the values that only links contain
// are absent.
type Network struct {
	set      *ifaces.Set
	patterns []string
	known    map[string]bool // interfaces of the previous read
}

// NewNetwork returns the source for the interfaces that a set watches.
func NewNetwork(set *ifaces.Set, patterns []string) *Network {
	return &Network{set: set, patterns: patterns, known: make(map[string]bool)}
}

// Read implements Source. It can return states together with an error: those
// that are readable despite the error.
func (n *Network) Read(context.Context) (states []record.State, from string, err error) {
	all := make(map[string]*record.Interface)
	get := func(name string, index int) *record.Interface {
		if all[name] == nil {
			all[name] = &record.Interface{Name: name, Index: index, Present: true, Addresses: []string{}}
		}
		return all[name]
	}
	links, problem := retry(netlink.LinkList)
	names := make(map[int]string)
	for _, link := range links {
		a := link.Attrs()
		names[a.Index] = a.Name
		if a.Flags&net.FlagLoopback != 0 && !slices.Contains(n.patterns, a.Name) || !n.wanted(a.Name) {
			continue
		}
		i := get(a.Name, a.Index)
		up, running := a.Flags&net.FlagUp != 0, a.RawFlags&unix.IFF_RUNNING != 0
		i.State, i.Up, i.Running, i.MTU = a.OperState.String(), &up, &running, a.MTU
		i.Addresses = append(i.Addresses, addresses(link)...)
	}
	for _, usable := range n.set.Snapshot() {
		i := get(usable.Name, usable.Index)
		names[usable.Index] = usable.Name
		i.Usable, i.DefaultIPv4, i.DefaultIPv6 = true, usable.DefaultIPv4, usable.DefaultIPv6
		if len(i.Addresses) == 0 {
			for _, a := range usable.Addrs {
				i.Addresses = append(i.Addresses, a.String())
			}
		}
	}
	for name := range n.known {
		if all[name] == nil {
			states = append(states, &record.Interface{Name: name, Addresses: []string{}})
			delete(n.known, name)
		}
	}
	for name, i := range all {
		n.known[name] = true
		slices.Sort(i.Addresses)
		i.Addresses = i.Addresses[:min(len(i.Addresses), addressesMost)]
		states = append(states, i)
	}
	slices.SortFunc(states, func(a, b record.State) int { return cmp.Compare(a.Key(), b.Key()) })
	routes, err := defaults(names)
	if err == nil {
		states = append(states, &record.Routes{Routes: routes})
	}
	from = "netlink"
	if problem != nil {
		problem, from = fmt.Errorf("the links cannot be listed: %w", problem), "netlink, without links"
	}
	if err != nil {
		err = fmt.Errorf("the routes cannot be listed: %w", err)
	}
	return states, from, errors.Join(problem, err)
}

// wanted reports whether an interface matches one of the patterns.
func (n *Network) wanted(name string) bool {
	return len(n.patterns) == 0 || slices.ContainsFunc(n.patterns, func(pattern string) bool {
		matches, _ := path.Match(pattern, name)
		return matches
	})
}

// retry repeats reading a list that changed during the read. After the last
// attempt it accepts the list.
func retry[T any](list func() ([]T, error)) (all []T, err error) {
	for range dumpTries {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return all, nil
}

// addresses returns the addresses of a link with prefix length.
func addresses(link netlink.Link) (all []string) {
	found, err := retry(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return nil
	}
	for _, a := range found {
		if a.IPNet != nil && a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 {
			all = append(all, a.IPNet.String())
		}
	}
	return all
}

// routesMost is the maximum number of routes in a record.
const routesMost = 1024

// defaults returns the default routes of all tables, sorted.
func defaults(names map[int]string) ([]record.Route, error) {
	all := []record.Route{}
	for family, number := range map[int]int{netlink.FAMILY_V4: 4, netlink.FAMILY_V6: 6} {
		found, err := retry(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			if r.Table == unix.RT_TABLE_LOCAL || r.Flags&unix.RTM_F_CLONED != 0 || r.Dst != nil && !whole(r.Dst) {
				continue
			}
			hops := []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw, Via: r.Via}}
			if len(r.MultiPath) > 0 {
				hops = r.MultiPath
			}
			for _, hop := range hops {
				route := record.Route{Family: number, Table: r.Table, Metric: max(r.Priority, 0), Interface: names[hop.LinkIndex], Type: kind(r.Type)}
				if hop.Gw != nil {
					route.Gateway = hop.Gw.String()
				} else if via, ok := hop.Via.(*netlink.Via); ok {
					route.Gateway = via.Addr.String()
				}
				all = append(all, route)
			}
		}
	}
	slices.SortFunc(all, func(a, b record.Route) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Metric, b.Metric),
			strings.Compare(a.Interface, b.Interface), strings.Compare(a.Gateway, b.Gateway), strings.Compare(a.Type, b.Type))
	})
	return all[:min(len(all), routesMost)], nil
}

// whole reports whether a destination is the whole address space of its family.
func whole(destination *net.IPNet) bool {
	ones, bits := destination.Mask.Size()
	return ones == 0 && bits > 0
}

// kind returns the name of a route type (RTN_*).
func kind(n int) string {
	if name, known := map[int]string{unix.RTN_UNICAST: "unicast", unix.RTN_BLACKHOLE: "blackhole", unix.RTN_UNREACHABLE: "unreachable",
		unix.RTN_PROHIBIT: "prohibit", unix.RTN_THROW: "throw"}[n]; known {
		return name
	}
	return fmt.Sprintf("type %d", n)
}
