package wire

import "sync"

// Memory refuses nonces that it has seen. It stores the last ones, up to a limit, and
// needs no clock: it forgets a nonce only when as many newer ones have arrived.
type Memory struct {
	limit int

	mu   sync.Mutex // guards the fields below
	seen map[[NonceSize]byte]struct{}
	ring [][NonceSize]byte // the last nonces
	next int               // index in ring of the oldest one, when ring is full
}

// NewMemory returns a memory of limit nonces.
func NewMemory(limit int) *Memory {
	return &Memory{limit: limit, seen: make(map[[NonceSize]byte]struct{})}
}

// Once returns nil for a new nonce, otherwise ErrReplay.
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
