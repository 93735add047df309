package names

import (
	"container/list"
	"net/netip"
	"sync"
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
type Cache struct {
	limit int

	mu      sync.Mutex // guards what follows
	entries map[netip.Addr]*list.Element
	order   *list.List // of *entry, the one learned last in front
}

type entry struct {
	addr    netip.Addr
	name    string
	expires time.Time
}

// NewCache returns a cache of at most limit addresses; beyond that the one
// that was learned longest ago is forgotten.
func NewCache(limit int) *Cache {
	return &Cache{limit: max(limit, 1), entries: make(map[netip.Addr]*list.Element), order: list.New()}
}

// Add remembers that name has addr, for its time to live (RFC 2181 §8), though
// for a minute at least and a day at most. What is no host name is ignored.
func (c *Cache) Add(name string, addr netip.Addr, ttl time.Duration, now time.Time) {
	name, ok := Normalize(name)
	if !ok || !addr.IsValid() {
		return
	}
	e := &entry{addr: addr.Unmap().WithZone(""), name: name, expires: now.Add(min(max(ttl, minTTL), maxTTL))}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, known := c.entries[e.addr]; known {
		old.Value = e
		c.order.MoveToFront(old)
		return
	}
	c.entries[e.addr] = c.order.PushFront(e)
	if c.order.Len() > c.limit {
		c.forget(c.order.Back())
	}
}

// Lookup returns the name that an address was given for; "" when none is known
// or its time is over.
func (c *Cache) Lookup(addr netip.Addr, now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, known := c.entries[addr.Unmap().WithZone("")]
	if !known {
		return ""
	}
	found := element.Value.(*entry)
	if !now.Before(found.expires) {
		c.forget(element)
		return ""
	}
	return found.name
}

// Len returns how many addresses are remembered, those included whose time is
// over and that nobody asked for since.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

func (c *Cache) forget(element *list.Element) {
	delete(c.entries, element.Value.(*entry).addr)
	c.order.Remove(element)
}
