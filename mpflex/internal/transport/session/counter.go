package session

import (
	"net"
	"sync"
)

// gatherSize is how many bytes of records are given to TCP at once: fewer calls
// and larger segments for less work, but not so much that the other side waits.
const gatherSize = 128 << 10

// Counter stands between TLS and TCP. It counts what TCP has taken, and gathers
// the records of a batch.
type Counter struct {
	net.Conn

	mu        sync.Mutex // TLS itself may have something to say, too
	written   uint64
	gathering bool
	records   []byte // that TCP was not given yet
}

// Write implements net.Conn.
func (c *Counter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gathering {
		return c.put(b)
	}
	c.records = append(c.records, b...)
	if len(c.records)+len(b) > gatherSize { // the next would be too much
		return len(b), c.pass()
	}
	return len(b), nil
}

// put gives bytes to TCP.
func (c *Counter) put(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written += uint64(n)
	return n, err
}

// pass gives TCP what was gathered.
func (c *Counter) pass() error {
	_, err := c.put(c.records)
	c.records = c.records[:0]
	return err
}

// begin counts from here on.
func (c *Counter) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = 0
}

// total is how many bytes TCP has taken.
func (c *Counter) total() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written
}

// gather keeps what follows back until it is worth a call, or flush.
func (c *Counter) gather() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathering = true
}

// flush gives TCP what was kept back.
func (c *Counter) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathering = false
	if len(c.records) == 0 {
		return nil
	}
	return c.pass()
}
