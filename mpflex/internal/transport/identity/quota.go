package identity

import "sync"

// Quota counts a resource per client and bounds each count, so that no client uses all
// of it. The zero Quota has no bound.
type Quota struct {
	Most int // maximum of each client; 0: no bound. Do not change it during use

	mu   sync.Mutex
	used map[ID]int
}

// Take adds one to the count of a client. It returns false if the count is Most +
// beyond or more.
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

// Give subtracts one.
func (q *Quota) Give(id ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used[id]--; q.used[id] <= 0 {
		delete(q.used, id)
	}
}

// Over reports whether the count of a client is above Most.
func (q *Quota) Over(id ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Most > 0 && q.used[id] > q.Most
}
