package session

import (
	"net"
	"sync"
)

// gatherSize is how many bytes of TLS records are passed to TCP in one call. Fewer
// calls and larger segments cost less CPU time. More bytes would delay the other side.
const gatherSize = 128 << 10

// Counter sits between TLS and TCP. It counts the bytes written to TCP, and gathers the
// records of a batch.
type Counter struct {
	net.Conn

	mu        sync.Mutex // TLS may write messages of its own at any time
	written   uint64
	gathering bool
	records   []byte // not yet passed to TCP
}

// Write implements net.Conn.
func (c *Counter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gathering {
		return c.put(b)
	}
	c.records = append(c.records, b...)
	if len(c.records)+len(b) > gatherSize { // no room for the next record
		return len(b), c.pass()
	}
	return len(b), nil
}

// put writes bytes to TCP and counts them.
func (c *Counter) put(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written += uint64(n)
	return n, err
}

// pass writes the gathered records to TCP.
func (c *Counter) pass() error {
	_, err := c.put(c.records)
	c.records = c.records[:0]
	return err
}

// begin sets the count to 0.
func (c *Counter) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = 0
}

// total returns how many bytes were written to TCP since begin.
func (c *Counter) total() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written
}

// gather holds records back until there are gatherSize bytes, or until flush.
func (c *Counter) gather() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathering = true
}

// flush passes all held records to TCP and ends gathering.
func (c *Counter) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathering = false
	if len(c.records) == 0 {
		return nil
	}
	return c.pass()
}
