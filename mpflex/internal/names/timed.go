package names

import (
	"container/list"
	"sync"
	"time"
)

// timed remembers values for a time, a bounded number of them. It is safe for
// concurrent use.
type timed[K comparable, V any] struct {
	limit int

	mu      sync.Mutex // guards what follows
	entries map[K]*list.Element
	order   *list.List // of entry[K, V], the one learned last in front
}

type entry[K comparable, V any] struct {
	key     K
	value   V
	expires time.Time
}

// newTimed remembers at most limit values; beyond that the one that was learned
// longest ago is forgotten.
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

// lookup returns a value whose time is not over.
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

// size is how many values are remembered, those included whose time is over and
// that nobody asked for since.
func (t *timed[K, V]) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.order.Len()
}

func (t *timed[K, V]) forget(element *list.Element) {
	delete(t.entries, element.Value.(entry[K, V]).key)
	t.order.Remove(element)
}
