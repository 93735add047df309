package session

import "slices"

// history holds the counters of paths' earlier incarnations. A path that has ended is
// still read for a moment and kept in ending.
type history struct {
	ending []*Path
	past   map[uint8]PathStatus // by path number, over all closed incarnations
}

// ends adds a path that is no longer attached.
func (h *history) ends(p *Path) { h.ending = append(h.ending, p) }

// over adds the counters of a path that is no longer read.
func (h *history) over(p *Path) {
	i := slices.Index(h.ending, p)
	if i < 0 {
		return // not recorded by ends
	}
	h.ending = slices.Delete(h.ending, i, i+1)
	if h.past == nil {
		h.past = map[uint8]PathStatus{}
	}
	h.past[p.link.ID] = p.status().with(h.past[p.link.ID])
}

// all returns the counters of each path over all its earlier incarnations.
func (h *history) all() map[uint8]PathStatus {
	all := make(map[uint8]PathStatus, len(h.past)+len(h.ending))
	for id, row := range h.past {
		all[id] = row
	}
	for _, p := range h.ending {
		all[p.link.ID] = p.status().with(all[p.link.ID])
	}
	return all
}

// with adds the counters of another incarnation of a path. The state is that of the
// later one.
func (row PathStatus) with(other PathStatus) PathStatus {
	if other.Incarnation > row.Incarnation {
		row, other = other, row
	}
	row.BytesOut += other.BytesOut
	row.BytesIn += other.BytesIn
	row.MessagesOut += other.MessagesOut
	row.MessagesIn += other.MessagesIn
	row.CopiesOut += other.CopiesOut
	row.CopiesIn += other.CopiesIn
	row.ControlOut += other.ControlOut
	row.Framed += other.Framed
	row.DatagramsOut += other.DatagramsOut
	row.DatagramsIn += other.DatagramsIn
	row.Retransmitted += other.Retransmitted
	return row
}
