package names

import (
	"net/netip"
	"time"
)

// Bounds of how long an answer is used, regardless of its time to live: applications
// keep addresses for a while and connect to them later.
const (
	minTTL = time.Minute
	maxTTL = 24 * time.Hour
)

// Cache maps addresses to names, from DNS answers to applications. An address that
// several names share has the name that was resolved last. It is safe for concurrent
// use.
type Cache struct{ names *timed[netip.Addr, string] }

// NewCache returns a cache of at most limit addresses. A further one replaces the one
// learned first.
func NewCache(limit int) *Cache { return &Cache{newTimed[netip.Addr, string](limit)} }

// Add stores that name has addr, for its time to live (RFC 2181 §8), but at least a
// minute and at most a day. A name that is not a host name is ignored.
func (c *Cache) Add(name string, addr netip.Addr, ttl time.Duration, now time.Time) {
	name, ok := Normalize(name)
	if !ok || !addr.IsValid() {
		return
	}
	c.names.add(addr.Unmap().WithZone(""), name, now.Add(min(max(ttl, minTTL), maxTTL)))
}

// Lookup returns the name of an address, or "" if it is unknown or has expired.
func (c *Cache) Lookup(addr netip.Addr, now time.Time) string {
	name, _ := c.names.lookup(addr.Unmap().WithZone(""), now)
	return name
}

// Len returns the number of stored addresses. It includes expired ones that were not
// looked up since.
func (c *Cache) Len() int { return c.names.size() }

// Hosts maps host names to addresses, for the time to live of the answer (RFC 1035
// §3.2.1), at most a day. It is safe for concurrent use.
type Hosts struct{ addresses *timed[string, netip.Addr] }

// NewHosts returns a Hosts of at most limit names. A further one replaces the one
// learned first.
func NewHosts(limit int) *Hosts { return &Hosts{newTimed[string, netip.Addr](limit)} }

// Learn stores the first address in a DNS answer for the name in its question,
// following aliases, and returns it. It returns false if there is no address. An
// address with a time to live of 0 is not stored.
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

// Lookup returns the address of a name, or false if it is unknown or has expired.
func (h *Hosts) Lookup(name string, now time.Time) (netip.Addr, bool) {
	name, ok := Normalize(name)
	if !ok {
		return netip.Addr{}, false
	}
	return h.addresses.lookup(name, now)
}
