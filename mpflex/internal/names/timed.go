package names

import (
	"container/list"
	"sync"
	"time"
)

// timed is a map whose values expire, with a bounded size. It is safe for concurrent
// use.
type timed[K comparable, V any] struct {
	limit int

	mu      sync.Mutex // guards the fields below
	entries map[K]*list.Element
	order   *list.List // of entry[K, V], the last learned first
}

type entry[K comparable, V any] struct {
	key     K
	value   V
	expires time.Time
}

// newTimed returns a map of at most limit values. A further one replaces the one
// learned first.
func newTimed[K comparable, V any](limit int) *timed[K, V] {
	return &timed[K, V]{limit: max(limit, 1), entries: make(map[K]*list.Element), order: list.New()}
}

func (t *timed[K, V]) add(key K, value V, expires time.Time) {
	e := entry[K, V]{key, value, expires}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, known := t.entries[key]; known {
		old.Value = e
		t.order.MoveToFront(old)
		return
	}
	t.entries[key] = t.order.PushFront(e)
	if t.order.Len() > t.limit {
		t.forget(t.order.Back())
	}
}

// lookup returns a value that has not expired.
func (t *timed[K, V]) lookup(key K, now time.Time) (value V, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	element, known := t.entries[key]
	if !known {
		return value, false
	}
	found := element.Value.(entry[K, V])
	if !now.Before(found.expires) {
		t.forget(element)
		return value, false
	}
	return found.value, true
}

// size returns the number of stored values. It includes expired ones that were not
// looked up since.
func (t *timed[K, V]) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.order.Len()
}

func (t *timed[K, V]) forget(element *list.Element) {
	delete(t.entries, element.Value.(entry[K, V]).key)
	t.order.Remove(element)
}
