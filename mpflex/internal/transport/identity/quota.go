package identity

import "sync"

// Quota counts what each client has of something, so that none takes all of it.
// The zero Quota counts without a bound.
type Quota struct {
	Most int // of each client; 0: no bound. Not changed once it is in use

	mu   sync.Mutex
	used map[ID]int
}

// Take counts one more for a client, unless it has Most and this many beyond.
func (q *Quota) Take(id ID, beyond int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Most > 0 && q.used[id] >= q.Most+beyond {
		return false
	}
	if q.used == nil {
		q.used = make(map[ID]int)
	}
	q.used[id]++
	return true
}

// Give counts one less.
func (q *Quota) Give(id ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used[id]--; q.used[id] <= 0 {
		delete(q.used, id)
	}
}

// Over tells whether a client has more than Most.
func (q *Quota) Over(id ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Most > 0 && q.used[id] > q.Most
}
