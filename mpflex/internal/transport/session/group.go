package session

import "slices"

// thresholds divides streams into queues by the bytes they have sent. A stream that has
// sent less goes first. In the first queues each stream sends all its messages before
// the next one starts: short flows then end earlier on average than if they shared the
// path, the links are not idle while all streams wait for answers at once, and the
// length of a stream need not be known (Bai et al., "Information-Agnostic Flow
// Scheduling", NSDI 2015, §4). The first threshold is about TCP's initial window (RFC
// 6928).
var thresholds = [...]uint64{16 << 10, 128 << 10}

// ahead is how many messages a queue sends before one message of a later queue.
const ahead = 3

// group holds the streams of one scheme that have something to send.
type group struct {
	scheme *Scheme
	queues [len(thresholds) + 1]queue // the streams of the last one take turns
	chosen []*Path                    // for the next message

	flows   []*flow // with datagrams to send
	bearers []*Path // for the first of them

	streams int // all streams with the scheme, idle ones included
}

// mostGroups bounds the schemes that a session uses at a time. Streams with another
// scheme use the session's default.
const mostGroups = 1024

// queue holds waiting streams.
type queue struct {
	streams []*Stream
	used    int // messages sent since a later queue sent one
}

// groupOf returns the group of a scheme. If it is new, groupOf first removes unused
// groups.
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

// next returns the stream whose message is assigned next; nil: no stream has one.
func (g *group) next() *Stream {
	if q := g.turn(); q != nil {
		return q.streams[0]
	}
	return nil
}

// turn returns the queue whose stream is next; nil: all are empty.
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

// skip removes streams from the head of a queue that have nothing to send any more,
// because their windows have closed.
func (q *queue) skip() {
	for len(q.streams) > 0 && !q.streams[0].eager() {
		q.streams[0].queued = false
		q.streams = q.streams[1:]
	}
}

// waits reports whether a stream of the group has something to send.
func (g *group) waits() bool { return g.next() != nil }

// placed passes the turn on after a message of st was assigned to a path. next must
// have returned st.
func (g *group) placed(st *Stream) {
	g.chosen = g.chosen[:0]
	for i := range g.queues {
		q := &g.queues[i]
		if len(q.streams) == 0 {
			continue
		}
		if q.streams[0] != st {
			q.used = 0 // it had its turns; now a later queue has one
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

// behind reports whether streams wait in a queue after queue i.
func (g *group) behind(i int) bool {
	return slices.ContainsFunc(g.queues[i+1:], func(q queue) bool { return len(q.streams) > 0 })
}

// enter puts a stream into a queue of its group if it has something to send.
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

// leave removes a stream from its queue.
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
