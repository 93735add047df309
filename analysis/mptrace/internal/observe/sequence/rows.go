package sequence

import "mplab/analysis/mptrace/tables"

// source yields the points of a series one by one.
type source struct {
	points []point
	kind   string
	ack    bool
}

var sentKinds = [3]string{"data", "retransmission", "reinjection"}

// writeDirection writes all points in the order of time; points of the same
// time in the order data, retransmission, reinjection, acknowledgement. row
// holds the common columns. It returns the number of rows.
func (o *Observer) writeDirection(d *direction, row tables.Point) int {
	sources := o.sources[:0]
	for i := range d.sent {
		sources = d.sent[i].sources(sources, sentKinds[i], false)
	}
	sources = d.acks.sources(sources, "ack", true)
	o.sources = sources
	n := 0
	for len(sources) > 0 {
		first := 0
		for i := range sources {
			if sources[i].points[0].timeNS < sources[first].points[0].timeNS {
				first = i
			}
		}
		s := &sources[first]
		n += s.row(o.out, row)
		if s.points = s.points[1:]; len(s.points) == 0 {
			sources = append(sources[:first], sources[first+1:]...)
		}
	}
	return n
}

// sources appends the series that have points. Waiting data becomes a point.
func (k *kind) sources(to []source, kind string, ack bool) []source {
	for i := range k.series {
		t := &k.series[i]
		if t.wait.weight > 0 {
			t.points = append(t.points, t.wait)
		}
		if len(t.points) > 0 {
			to = append(to, source{t.points, kind, ack})
		}
	}
	return to
}

// row writes a point and returns the number of its rows.
func (s *source) row(out *tables.Stream[tables.Point], row tables.Point) int {
	p := &s.points[0]
	row.SubflowID, row.TimeNS, row.Kind = p.sub, p.timeNS, s.kind
	row.Offset, row.Weight = int64(p.offset), int32(p.weight)
	if !s.ack {
		row.Bytes = int64(p.bytes)
		out.Add(row)
		return 1
	}
	out.Add(row)
	row.Kind, row.Offset = "window", int64(p.bytes)
	out.Add(row)
	return 2
}
