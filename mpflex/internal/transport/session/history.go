package session

import "slices"

// history is what the earlier connections of paths did. A path that has ended
// is read for a moment more; until then it counts itself.
type history struct {
	ending []*Path
	past   map[uint8]PathStatus // by the number of the path, all its incarnations that are over
}

// ends takes note of a path that is not attached any more.
func (h *history) ends(p *Path) { h.ending = append(h.ending, p) }

// over takes note of a path of which nothing is read any more.
func (h *history) over(p *Path) {
	i := slices.Index(h.ending, p)
	if i < 0 {
		return // it is attached until the session ends
	}
	h.ending = slices.Delete(h.ending, i, i+1)
	if h.past == nil {
		h.past = map[uint8]PathStatus{}
	}
	h.past[p.link.ID] = p.status().with(h.past[p.link.ID])
}

// all is what is over of each path.
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

// with adds what another incarnation of a path did. How the path is, the later
// one tells.
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
