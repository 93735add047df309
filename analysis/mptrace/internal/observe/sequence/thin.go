package sequence

// point is a kept point.
type point struct {
	timeNS int64
	offset uint64
	bytes  uint64 // since the previous point
	weight uint32 // number of segments that it represents
	sub    int32
}

// kind holds the points of one kind. All its series are thinned with the same
// stride, so that they stay comparable.
type kind struct {
	series  []series // by subflow
	kept    int      // number of points in all series
	stride  uint32
	numbers bool // bytes is a number, not a sum
}

// series holds the points of one subflow: its first segment, and then one point
// per stride segments, at the last of them.
type series struct {
	points []point
	wait   point  // data since the last point: place of the last segment, sums over all
	stride uint32 // weight at which wait becomes a point
}

// of returns the series of a subflow.
func (k *kind) of(sub int32) *series {
	if int(sub) < len(k.series) {
		return &k.series[sub]
	}
	return k.grow(sub)
}

func (k *kind) grow(sub int32) *series {
	k.stride = max(k.stride, 1)
	for n := len(k.series); n <= int(sub); n++ {
		if n < cap(k.series) {
			k.series = k.series[:n+1] // reuses the memory for points of an earlier series
		} else {
			k.series = append(k.series, series{})
		}
		k.series[n] = series{points: k.series[n].points[:0], stride: 1, wait: point{sub: int32(n)}}
	}
	return &k.series[sub]
}

// reset drops everything except the memory for points.
func (k *kind) reset() { *k = kind{series: k.series[:0]} }

// budget bounds the number of kept points.
type budget struct {
	limit int // per kind
	kept  int // in all connections
}

// With more than crowded points (32 bytes each) in all connections, each
// growing kind is limited to few points.
const (
	crowded = 1 << 19
	few     = 64
)

// keep converts the waiting data into a point, if there is room or thinning
// makes room.
func (b *budget) keep(k *kind, t *series) {
	limit := b.limit
	if b.kept >= crowded {
		limit = min(limit, few)
	}
	if k.kept >= limit {
		b.kept -= k.thin()
		if t.wait.weight < t.stride || k.kept >= limit {
			return
		}
	}
	t.points = append(t.points, t.wait)
	t.wait = point{sub: t.wait.sub}
	t.stride = k.stride
	k.kept++
	b.kept++
}

// thin drops every second point and returns the number of dropped points.
func (k *kind) thin() int {
	if k.stride < 1<<30 {
		k.stride *= 2
	}
	before := k.kept
	k.kept = 0
	for i := range k.series {
		t := &k.series[i]
		t.thin(!k.numbers)
		t.stride = k.stride
		k.kept += len(t.points)
	}
	return before - k.kept
}

// thin keeps the first point; of those after it, it merges pairs into one. A
// remaining single point waits again.
func (t *series) thin(sum bool) {
	old := t.points
	if len(old) < 2 {
		return
	}
	t.points = old[:1]
	for i := 2; i < len(old); i += 2 {
		t.points = append(t.points, old[i].after(old[i-1], sum))
	}
	if len(old)%2 == 0 {
		left := old[len(old)-1]
		if t.wait.weight == 0 {
			t.wait = left
		} else {
			t.wait = t.wait.after(left, sum)
		}
	}
}

// after adds the weight of the point before.
func (p point) after(before point, sum bool) point {
	p.weight += before.weight
	if sum {
		p.bytes += before.bytes
	}
	return p
}
