package loopback

// table remembers clients, the newest of them.
type table struct {
	of    map[endpoint]*half
	order []*half // a ring: the next to go is at head
	head  int
	limit int
}

func newTable(limit int) *table { return &table{limit: limit, of: map[endpoint]*half{}} }

func (t *table) get(client endpoint) *half { return t.of[client] }

// add takes a client, and returns the one that had to go for it.
func (t *table) add(h *half) (gone *half) {
	if len(t.order) < t.limit {
		t.order = append(t.order, h)
	} else {
		if old := t.order[t.head]; t.of[old.client] == old {
			delete(t.of, old.client)
			gone = old
		}
		t.order[t.head] = h
		t.head = (t.head + 1) % t.limit
	}
	t.of[h.client] = h
	return gone
}

// remove forgets a client, and returns what was known of it.
func (t *table) remove(client endpoint) *half {
	h := t.of[client]
	delete(t.of, client)
	return h
}
