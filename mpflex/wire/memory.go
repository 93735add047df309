package wire

import "sync"

// Memory refuses nonces that it has seen. It remembers the latest, a bounded
// number of them, for ever: it needs no clock, and forgets what is old only
// when as many others have come since.
type Memory struct {
	limit int

	mu   sync.Mutex // guards what follows
	seen map[[NonceSize]byte]struct{}
	ring [][NonceSize]byte // the latest
	next int               // of ring: the oldest, when it is full
}

// NewMemory returns a memory of limit nonces.
func NewMemory(limit int) *Memory {
	return &Memory{limit: limit, seen: make(map[[NonceSize]byte]struct{})}
}

// Once returns nil the first time that a nonce is shown, else ErrReplay.
func (m *Memory) Once(nonce [NonceSize]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, seen := m.seen[nonce]; seen {
		return ErrReplay
	}
	m.seen[nonce] = struct{}{}
	if len(m.ring) < m.limit {
		m.ring = append(m.ring, nonce)
		return nil
	}
	delete(m.seen, m.ring[m.next])
	m.ring[m.next] = nonce
	m.next = (m.next + 1) % m.limit
	return nil
}
