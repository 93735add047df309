package ends

// point is a delay between two clocks: x is when, in ns from the start, y how
// much the arriving clock said more than the sending one.
type point struct{ x, y float64 }

// hull is the lower convex hull of points that come in the order of x. It
// holds every point that can be the lowest for some slope.
type hull []point

// add takes a point; false when it comes behind one with a larger x: such a
// packet was overtaken, so it is not among the fastest.
func (h *hull) add(p point) bool {
	v := *h
	if n := len(v); n > 0 && p.x <= v[n-1].x {
		if p.x < v[n-1].x {
			return false
		}
		if p.y >= v[n-1].y {
			return true
		}
		v = v[:n-1]
	}
	for len(v) >= 2 && !convex(v[len(v)-2], v[len(v)-1], p) {
		v = v[:len(v)-1]
	}
	*h = append(v, p)
	return true
}

// convex says whether b lies below the line from a to c.
func convex(a, b, c point) bool {
	return (b.y-a.y)*(c.x-a.x) < (c.y-a.y)*(b.x-a.x)
}

// low is the height at 0 of the highest line of this slope that no point lies below.
func (h hull) low(slope float64) float64 {
	if len(h) == 0 {
		return 0
	}
	low := h[0].y - slope*h[0].x
	for _, p := range h[1:] {
		low = min(low, p.y-slope*p.x)
	}
	return low
}

// edge is the slope of the hull over x: of all lines below the points, that
// of the one which is nearest to points whose mean x this is.
func (h hull) edge(x float64) float64 {
	if len(h) < 2 {
		return 0
	}
	i := 1
	for i < len(h)-1 && h[i].x < x {
		i++
	}
	return (h[i].y - h[i-1].y) / (h[i].x - h[i-1].x)
}
