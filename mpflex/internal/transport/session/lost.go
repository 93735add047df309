package session

import (
	"encoding/binary"
	"slices"
	"time"

	"mplab/mpflex/internal/transport/frame"
)

// formerPath is a path that has ended. TCP had delivered its messages, but the other
// side may not have read them. The path end of the other side states how many bytes it
// took.
type formerPath struct {
	id          uint8
	incarnation uint32
	delivered   []entry
	sinceNS     int64 // start of the wait for the path end; 0: not started, since no path exists
}

const (
	// mostFormer bounds the former paths that are waited for. Beyond it, the messages
	// of the oldest one are sent again.
	mostFormer = 64
	// formerPatience bounds the wait for a path end while a path exists that can carry
	// it. Then the messages are sent again: the other side may never have had the path.
	formerPatience = 2 * time.Second
)

// pathEnd reports how many bytes of a path's frames were taken.
type pathEnd struct {
	id          uint8
	incarnation uint32
	taken       uint64
}

func (e pathEnd) append(b []byte) []byte {
	b = frame.Header{Type: frame.PathEnd, Flags: frame.Flags(e.id), Size: 8, Stream: e.incarnation}.Append(b)
	return binary.BigEndian.AppendUint64(b, e.taken)
}

// lose prepares the messages of an ended path for other paths. Messages that TCP had
// not delivered are sent again now, the others when the path end reports that they were
// not taken. Control frames that may be lost are repeated.
func (s *Session) lose(p *Path) {
	if p.endedThere {
		s.lost = appendUntaken(s.lost, p.sent.list, p.tookThere)
		p.sent = entries{}
	}
	s.lost = append(s.lost, p.sent.flying()...)
	if n := p.sent.acked; n > 0 {
		if len(s.former) == mostFormer {
			s.resolve(0, 0)
		}
		s.former = append(s.former, &formerPath{id: p.link.ID, incarnation: p.link.Incarnation, delivered: slices.Clone(p.sent.list[:n])})
	}
	p.sent = entries{}
	s.lost = append(s.lost, p.twins...)
	p.twins = nil
	s.dropCopies(p)
	s.dropDatagrams()
	s.repeatFins()
	s.repeatControl(0)
}

// repeatFins sends unacknowledged ends of streams again: the acknowledgement may be
// lost, and the other side may have forgotten the stream.
func (s *Session) repeatFins() {
	for _, st := range s.streams {
		if st.finSent && st.acked <= st.out.end && st.reset == nil {
			s.lost = append(s.lost, entry{st: st, lo: st.out.end, fin: true})
		}
	}
}

// repeatControl repeats the control frames that a path may have lost or still holds:
// path ends, unanswered resets, and the acknowledgements that were sent at sinceNS or
// later.
func (s *Session) repeatControl(sinceNS int64) {
	s.ends = slices.Clone(s.ended)
	for _, st := range s.streams {
		if st.reset == nil && st.ackNS >= sinceNS && (st.ackedNow > 0 || st.granted > uint64(s.config.InitialWindow)) {
			st.dueAck()
		}
		if st.resetWhy != 0 && !st.resetDue {
			st.resetDue = true
			s.control.push(st)
		}
	}
	s.wake()
}

// appendUntaken appends the messages of a path that lie beyond the bytes taken.
func appendUntaken(to, list []entry, taken uint64) []entry {
	for _, e := range list {
		if e.framed > taken && !e.arrived() {
			to = append(to, e)
		}
	}
	return to
}

// tookAll sends the path end of a path that is not read any more, and closes it.
func (s *Session) tookAll(p *Path) {
	s.sendEnd(pathEnd{p.link.ID, p.link.Incarnation, p.taken})
	s.history.over(p)
	if !p.goAway {
		_ = p.link.TCP.SetLinger(0)
	}
	_ = p.link.TCP.Close()
}

// sendEnd sends a path end, and again whenever it may have been lost.
func (s *Session) sendEnd(end pathEnd) {
	if s.err != nil {
		return
	}
	if len(s.ended) == mostFormer {
		s.ended = slices.Delete(s.ended, 0, 1)
	}
	s.ended, s.ends = append(s.ended, end), append(s.ends, end)
	s.wake()
}

// GiveUp sends a path end with 0 bytes taken for a connection that the other side may
// have made a path. Call it if an attach was sent, or answered with ok, and Attach is
// not called or fails.
func (s *Session) GiveUp(id uint8, incarnation uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendEnd(pathEnd{id: id, incarnation: incarnation})
	s.repeatFins() // their acknowledgements may have gone over that path
}

// resolve sends the messages of a former path again that lie beyond the bytes taken.
func (s *Session) resolve(i int, taken uint64) {
	s.lost = appendUntaken(s.lost, s.former[i].delivered, taken)
	s.former = slices.Delete(s.former, i, i+1)
	s.wake()
}

// overdue sends the messages of former paths again whose path end did not arrive in
// time. It returns the time until the next one is due.
func (s *Session) overdue(now int64) time.Duration {
	next := never
	for i := len(s.former) - 1; i >= 0; i-- {
		switch f := s.former[i]; {
		case len(s.paths) == 0:
			f.sinceNS = 0
		case f.sinceNS == 0:
			f.sinceNS = now
			next = min(next, formerPatience)
		default:
			left := formerPatience - time.Duration(now-f.sinceNS)
			if left < 0 {
				s.resolve(i, 0)
				continue
			}
			next = min(next, left+watchEvery)
		}
	}
	return next
}

// pathEnded processes a path end: it ends that path, or resolves the former one.
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
		s.resolve(i, taken)
		return
	}
}
