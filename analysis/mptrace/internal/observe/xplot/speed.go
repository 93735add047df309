package xplot

// window is the number of segments with payload over which throughput is
// averaged.
const window = 250

// speed draws throughput: per window, and since the first segment.
type speed struct {
	first, last int64  // time of the first and the last segment
	begin       int64  // start of the window: the last segment of the previous window
	bytes       uint64 // in the window
	before      uint64 // in all previous windows
	segments    int
	windows     int
	drawn       struct {
		timeNS          int64
		window, average float64
	}
}

func (s *speed) segment(p *plot, timeNS int64) {
	s.last = timeNS
	if s.segments++; s.segments == window {
		s.draw(p)
	}
}

// end draws the last, partial window.
func (s *speed) end(p *plot) {
	if s.segments > 0 {
		s.draw(p)
	}
}

func (s *speed) draw(p *plot) {
	if s.windows == 0 {
		s.begin = s.first
	}
	s.before += s.bytes
	if s.last > s.begin && s.last > s.first {
		now := float64(s.bytes) * 1e9 / float64(s.last-s.begin)
		average := float64(s.before) * 1e9 / float64(s.last-s.first)
		mark(p, "dot", s.last, now, "red")
		if s.drawn.timeNS > 0 {
			line(p, s.drawn.timeNS, s.drawn.window, s.last, now, "red")
			line(p, s.drawn.timeNS, s.drawn.average, s.last, average, "blue")
		}
		s.drawn.timeNS, s.drawn.window, s.drawn.average = s.last, now, average
	}
	s.begin, s.bytes, s.segments = s.last, 0, 0
	s.windows++
}
