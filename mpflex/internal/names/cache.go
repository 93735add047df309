package names

import (
	"net/netip"
	"time"
)

// How long an answer is believed, whatever its own time to live: applications
// keep addresses for a while after it, and connect to them.
const (
	minTTL = time.Minute
	maxTTL = 24 * time.Hour
)

// Cache remembers for which name an address was given, from DNS answers on
// their way to the applications. An address that several names share has the
// name that was asked for last. It is safe for concurrent use.
type Cache struct{ names *timed[netip.Addr, string] }

// NewCache returns a cache of at most limit addresses; beyond that the one
// that was learned longest ago is forgotten.
func NewCache(limit int) *Cache { return &Cache{newTimed[netip.Addr, string](limit)} }

// Add remembers that name has addr, for its time to live (RFC 2181 §8), though
// for a minute at least and a day at most. What is no host name is ignored.
func (c *Cache) Add(name string, addr netip.Addr, ttl time.Duration, now time.Time) {
	name, ok := Normalize(name)
	if !ok || !addr.IsValid() {
		return
	}
	c.names.add(addr.Unmap().WithZone(""), name, now.Add(min(max(ttl, minTTL), maxTTL)))
}

// Lookup returns the name that an address was given for; "" when none is known
// or its time is over.
func (c *Cache) Lookup(addr netip.Addr, now time.Time) string {
	name, _ := c.names.lookup(addr.Unmap().WithZone(""), now)
	return name
}

// Len returns how many addresses are remembered, those included whose time is
// over and that nobody asked for since.
func (c *Cache) Len() int { return c.names.size() }

// Hosts remembers the address of a host name as long as the answer says that it
// may be (RFC 1035 §3.2.1), a day at most. It is safe for concurrent use.
type Hosts struct{ addresses *timed[string, netip.Addr] }

// NewHosts remembers at most limit names; beyond that the one that was learned
// longest ago is forgotten.
func NewHosts(limit int) *Hosts { return &Hosts{newTimed[string, netip.Addr](limit)} }

// Learn remembers the first address in a DNS answer for the name that was asked
// for, aliases followed, and returns it; false when there is none. With a time to
// live of 0 it is not remembered.
func (h *Hosts) Learn(message []byte, now time.Time) (netip.Addr, bool) {
	asked, found := readAnswer(message)
	if len(found) == 0 {
		return netip.Addr{}, false
	}
	if name, ok := Normalize(asked); ok && found[0].ttl > 0 {
		h.addresses.add(name, found[0].addr, now.Add(min(found[0].ttl, maxTTL)))
	}
	return found[0].addr, true
}

// Lookup returns the address of a name; false when none is known or its time is
// over.
func (h *Hosts) Lookup(name string, now time.Time) (netip.Addr, bool) {
	name, ok := Normalize(name)
	if !ok {
		return netip.Addr{}, false
	}
	return h.addresses.lookup(name, now)
}
