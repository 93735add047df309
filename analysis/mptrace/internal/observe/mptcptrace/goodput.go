package mptcptrace

// interval is the number of acknowledgements over which goodput is averaged, as
// with mptcptrace -G 250.
const interval = 250

// goodput holds the latest acknowledgements of new data.
type goodput struct {
	recent []moment // ring buffer
	count  int
	first  moment
	bucket moment // start of the bucket
}

type moment struct {
	timeNS int64
	offset uint64
}

// since returns the speed from a moment to this one in MB/s, or false if no
// time has passed.
func (m moment) since(before moment) (float64, bool) {
	if m.timeNS <= before.timeNS {
		return 0, false
	}
	return float64(m.offset-before.offset) / float64(m.timeNS-before.timeNS) * 1e3, true
}

// Series of the file gput.
const (
	seriesBucket = 1 + iota
	seriesAverage
	seriesMoving
)

func (w *way) goodput(timeNS int64, offset uint64) {
	g, now := &w.speed, moment{timeNS, offset}
	if g.count == 0 {
		g.first, g.bucket = now, now
	}
	g.count++
	if g.count > 1 && (g.count-1)%interval == 0 {
		w.speedSince(now, g.bucket, seriesBucket)
		g.bucket = now
	}
	w.speedSince(now, g.first, seriesAverage)
	if len(g.recent) < interval {
		g.recent = append(g.recent, now)
		return
	}
	oldest := &g.recent[(g.count-1)%interval]
	w.speedSince(now, *oldest, seriesMoving)
	*oldest = now
}

func (w *way) speedSince(now, before moment, series int) {
	if v, ok := now.since(before); ok {
		w.fraction(w.gput, now.timeNS, v, series)
	}
}
