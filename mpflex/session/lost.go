package session

import (
	"encoding/binary"
	"slices"

	"mplab/mpflex/frame"
)

// formerPath is a path that has ended: what TCP had delivered of it may not
// have been read. The other side says how much it took.
type formerPath struct {
	id          uint8
	incarnation uint32
	delivered   []entry
}

// mostFormer bounds how many paths are waited for.
const mostFormer = 64

// pathEnd tells how many bytes of frames of a path were taken.
type pathEnd struct {
	id          uint8
	incarnation uint32
	taken       uint64
}

func (e pathEnd) append(b []byte) []byte {
	b = frame.Header{Type: frame.PathEnd, Flags: frame.Flags(e.id), Size: 8, Stream: e.incarnation}.Append(b)
	return binary.BigEndian.AppendUint64(b, e.taken)
}

// lose sends the messages of a path that has ended over others: those that TCP
// had not delivered now, the others when the other side says that it did not
// take them. What is told once, and may have been lost, is told again.
func (s *Session) lose(p *Path) {
	if p.endedThere {
		s.lost = appendUntaken(s.lost, p.sent.list, p.tookThere)
		p.sent = entries{}
	}
	s.lost = append(s.lost, p.sent.flying()...)
	if n := p.sent.acked; n > 0 && len(s.former) < mostFormer {
		s.former = append(s.former, &formerPath{p.link.ID, p.link.Incarnation, slices.Clone(p.sent.list[:n])})
	}
	p.sent = entries{}
	s.lost = append(s.lost, p.twins...)
	p.twins, p.copies = nil, nil
	s.dropDatagrams()
	s.ends = slices.Clone(s.ended)
	for _, st := range s.streams {
		if st.finSent && st.acked <= st.out.end && st.reset == nil {
			s.lost = append(s.lost, entry{st: st, lo: st.out.end, fin: true})
		}
		if st.reset == nil && (st.ackedNow > 0 || st.granted > uint64(s.config.InitialWindow)) {
			st.dueAck()
		}
		if st.told != 0 && !st.resetDue {
			st.resetDue = true
			s.control.push(st)
		}
	}
	s.wake()
}

// appendUntaken appends the messages that lie behind what was taken of a path.
func appendUntaken(to, list []entry, taken uint64) []entry {
	for _, e := range list {
		if e.framed > taken && !e.arrived() {
			to = append(to, e)
		}
	}
	return to
}

// tookAll tells the other side how much of a path was taken, when no more of
// it will be.
func (s *Session) tookAll(p *Path) {
	if s.err == nil {
		if len(s.ended) == mostFormer {
			s.ended = slices.Delete(s.ended, 0, 1)
		}
		end := pathEnd{p.link.ID, p.link.Incarnation, p.taken}
		s.ended, s.ends = append(s.ended, end), append(s.ends, end)
		s.wake()
	}
	s.history.over(p)
	if !p.goAway {
		_ = p.link.TCP.SetLinger(0)
	}
	_ = p.link.TCP.Close()
}

// pathEnded takes what the other side took of a path.
func (s *Session) pathEnded(h frame.Header, taken uint64) {
	id := uint8(h.Flags)
	for _, p := range s.paths {
		if p.link.ID == id && p.link.Incarnation == h.Stream {
			go p.Abandon(errThere)
			p.tookThere, p.endedThere = taken, true
			return
		}
	}
	for i, f := range s.former {
		if f.id != id || f.incarnation != h.Stream {
			continue
		}
		s.lost = appendUntaken(s.lost, f.delivered, taken)
		s.former = slices.Delete(s.former, i, i+1)
		s.wake()
		return
	}
}
