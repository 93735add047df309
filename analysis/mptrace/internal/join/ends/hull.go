package ends

// point is a delay between two clocks: x is the time in ns from the start, y
// the receiver's clock minus the sender's clock.
type point struct{ x, y float64 }

// hull is the lower convex hull of points added in the order of x. It holds
// every point that is the lowest for some slope.
type hull []point

// add adds a point. It returns false for a point whose x is smaller than that
// of the last one: such a packet was overtaken, so it is not among the fastest.
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

// convex reports whether b lies below the line from a to c.
func convex(a, b, c point) bool {
	return (b.y-a.y)*(c.x-a.x) < (c.y-a.y)*(b.x-a.x)
}

// low returns the height at x = 0 of the highest line with this slope that has
// no point below it.
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

// edge returns the slope of the hull at x. If x is the mean of the points' x,
// this is the slope of the line below all points with the smallest mean
// distance to them.
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
