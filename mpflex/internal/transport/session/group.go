package session

import "slices"

// thresholds part streams by how much of them was sent. What has sent less goes
// first, and among the short ones each in one go, in their order: short flows end
// earlier on the average than if they shared, the links do not rest while all of
// them wait for answers at once, and nothing has to be known of their lengths
// (Bai et al., "Information-Agnostic Flow Scheduling", NSDI 2015, §4). The first
// is as much as TCP's initial window (RFC 6928).
var thresholds = [...]uint64{16 << 10, 128 << 10}

// ahead is how many messages of a queue come before one of the queues behind it.
const ahead = 3

// group are the streams with one scheme that have something to send.
type group struct {
	scheme *Scheme
	queues [len(thresholds) + 1]queue // the last one's streams take turns
	chosen []*Path                    // for the next message

	flows   []*flow // datagrams with the scheme, to be sent
	bearers []*Path // for the first of them

	streams int // that have the scheme
}

// mostGroups bounds how many schemes a session uses at a time. What has another
// one goes by the session's own.
const mostGroups = 1024

// queue is streams that wait.
type queue struct {
	streams []*Stream
	used    int // messages that it had since a queue behind it had one
}

// groupOf returns the group of a scheme. A new one takes the place of those that
// nothing uses any more.
func (s *Session) groupOf(scheme *Scheme) *group {
	for _, g := range s.groups {
		if g.scheme == scheme {
			return g
		}
	}
	s.groups = slices.DeleteFunc(s.groups, func(g *group) bool { return g != s.defaultGroup && g.streams == 0 && len(g.flows) == 0 })
	if len(s.groups) >= mostGroups {
		return s.defaultGroup
	}
	g := &group{scheme: scheme}
	s.groups = append(s.groups, g)
	return g
}

// next is the stream whose message is placed next; nil: none has one.
func (g *group) next() *Stream {
	if q := g.turn(); q != nil {
		return q.streams[0]
	}
	return nil
}

// turn is the queue whose stream is next; nil: all are empty.
func (g *group) turn() (best *queue) {
	for i := range g.queues {
		q := &g.queues[i]
		q.skip()
		switch {
		case len(q.streams) == 0:
			continue
		case best == nil:
			best = q
		case best.used >= ahead:
			best = q
		}
	}
	return best
}

// skip leaves out the streams at the head of a queue that have nothing any
// more: their windows have closed.
func (q *queue) skip() {
	for len(q.streams) > 0 && !q.streams[0].eager() {
		q.streams[0].queued = false
		q.streams = q.streams[1:]
	}
}

// waits says whether a stream of the group has something to send.
func (g *group) waits() bool { return g.next() != nil }

// placed gives the turn to the next stream after a message of st, which next
// had returned.
func (g *group) placed(st *Stream) {
	g.chosen = g.chosen[:0]
	for i := range g.queues {
		q := &g.queues[i]
		if len(q.streams) == 0 {
			continue
		}
		if q.streams[0] != st {
			q.used = 0 // it had its messages, now one behind it has
			continue
		}
		if g.behind(i) {
			q.used++
		}
		if i < len(thresholds) && st.next < thresholds[i] && st.eager() {
			return
		}
		q.streams = q.streams[1:]
		break
	}
	st.queued = false
	st.enter()
}

// behind says whether streams wait in a queue behind one.
func (g *group) behind(i int) bool {
	return slices.ContainsFunc(g.queues[i+1:], func(q queue) bool { return len(q.streams) > 0 })
}

// enter puts a stream into a queue of its group, when it has something to send.
func (st *Stream) enter() {
	if st.queued || !st.eager() {
		return
	}
	st.queued = true
	i := 0
	for i < len(thresholds) && st.next >= thresholds[i] {
		i++
	}
	q := &st.group.queues[i]
	q.streams = append(q.streams, st)
}

// leave takes it out.
func (st *Stream) leave() {
	if !st.queued {
		return
	}
	st.queued = false
	for i := range st.group.queues {
		q := &st.group.queues[i]
		q.streams = slices.DeleteFunc(q.streams, func(other *Stream) bool { return other == st })
	}
}
