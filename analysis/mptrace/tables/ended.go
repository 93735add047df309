package tables

// Ended calls a function for each connection that ends, with its subflows. The
// sink must not have rows yet, and no other watcher. finish passes the last
// rows.
func (s *Sink) Ended(call func(*Connection, []Subflow)) (finish func()) {
	subflows := map[int32][]Subflow{} // of connections whose row has not arrived yet
	show(&s.Subflows, nil, func(rows []Subflow) {
		for _, row := range rows {
			subflows[row.ConnectionID] = append(subflows[row.ConnectionID], row)
		}
	})
	show(&s.Connections, s.Subflows.look, func(rows []Connection) { // its row follows those of its subflows
		for i := range rows {
			call(&rows[i], subflows[rows[i].ConnectionID])
			delete(subflows, rows[i].ConnectionID)
		}
	})
	return s.Connections.look
}
