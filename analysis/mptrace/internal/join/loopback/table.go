package loopback

// table maps client endpoints to their state. It keeps the newest ones.
type table struct {
	of    map[endpoint]*half
	order []*half // ring buffer; the next to be evicted is at head
	head  int
	limit int
}

func newTable(limit int) *table { return &table{limit: limit, of: map[endpoint]*half{}} }

func (t *table) get(client endpoint) *half { return t.of[client] }

// add adds a client and returns the state that it evicted, or nil.
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

// remove removes a client and returns its state.
func (t *table) remove(client endpoint) *half {
	h := t.of[client]
	delete(t.of, client)
	return h
}
