package sequence

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/observe"
	"mplab/analysis/mptrace/tables"
)

// connect returns a connection with subflows.
func connect(id int32, subflows int) *mptcp.Conn {
	c := &mptcp.Conn{ID: id, MPTCP: subflows > 1}
	for i := range subflows {
		c.Subs = append(c.Subs, &mptcp.Sub{Conn: c, ID: int32(i)})
	}
	return c
}

func watch(samples int) (*Observer, *tables.Stream[tables.Point]) {
	sink := tables.NewMemorySink(tables.TablePoints, 0)
	return New(samples, sink.Points), sink.Points
}

// TestPoints: each kind of call yields its points, up before down, in the order
// of time.
func TestPoints(t *testing.T) {
	o, out := watch(0)
	c := connect(7, 2)
	a, b := c.Subs[0], c.Subs[1]
	o.Ack(a, mptcp.Down, 5, 0, 100) // before any data: ignored
	o.Data(a, mptcp.Down, 10, 0, 1000, nil)
	o.Ack(a, mptcp.Down, 20, 1000, 100)
	o.Data(b, mptcp.Down, 30, 1000, 2000, nil)
	o.Data(b, mptcp.Down, 40, 1000, 2000, b)
	o.Data(a, mptcp.Up, 45, 0, 5, nil)
	o.Data(a, mptcp.Down, 50, 1500, 2000, b)
	o.Ack(a, mptcp.Down, 60, 1000, 100) // a repetition
	o.Ack(b, mptcp.Down, 70, 1000, 200)
	o.End(c, nil)
	point := func(sub int32, dir string, ns int64, kind string, offset, bytes int64) tables.Point {
		return tables.Point{ConnectionID: 7, SubflowID: sub, Level: "mptcp", Direction: dir, TimeNS: ns, Kind: kind, Offset: offset, Bytes: bytes, Weight: 1}
	}
	want := []tables.Point{
		point(0, "up", 45, "data", 0, 5),
		point(0, "down", 10, "data", 0, 1000),
		point(0, "down", 20, "ack", 1000, 0),
		point(0, "down", 20, "window", 1100, 0),
		point(1, "down", 30, "data", 1000, 1000),
		point(1, "down", 40, "retransmission", 1000, 1000),
		point(0, "down", 50, "reinjection", 1500, 500),
		point(1, "down", 70, "ack", 1000, 0),
		point(1, "down", 70, "window", 1200, 0),
	}
	if got := out.Rows(); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

func TestConnectionWithoutDataHasNoPoints(t *testing.T) {
	o, out := watch(0)
	c := connect(0, 1)
	o.Ack(c.Subs[0], mptcp.Up, 1, 0, 65535)
	o.End(c, nil)
	if len(out.Rows()) != 0 {
		t.Errorf("%v", out.Rows())
	}
}

// TestThinning: any number of segments yields few points. Their sums are exact,
// the first and last point exist, and time does not decrease.
func TestThinning(t *testing.T) {
	const samples = 50
	for _, calls := range []int{1, 99, 100, 101, 102, 1000, 12345} {
		for _, subflows := range []int{1, 2, 5, 300} {
			random := rand.New(rand.NewPCG(1, uint64(calls*subflows)))
			o, out := watch(samples)
			c := connect(0, subflows)
			var lo uint64
			bytes, weights, last := map[int32]int64{}, map[int32]int64{}, int64(0)
			for i := range calls {
				s := c.Subs[random.IntN(subflows)]
				size := random.Uint64N(1400) + 1
				last = int64(i)
				o.Data(s, mptcp.Up, last, lo, lo+size, nil)
				bytes[s.ID] += int64(size)
				weights[s.ID]++
				lo += size
			}
			o.End(c, nil)
			rows := out.Rows()
			if limit := 2*samples + len(bytes); len(rows) > limit {
				t.Errorf("%d calls on %d subflows: %d points", calls, subflows, len(rows))
			}
			if rows[0].TimeNS != 0 || rows[len(rows)-1].TimeNS != last {
				if subflows <= samples { // with more subflows there is no room for the first of each
					t.Errorf("%d calls on %d subflows: from %d to %d", calls, subflows, rows[0].TimeNS, rows[len(rows)-1].TimeNS)
				}
			}
			for i, row := range rows {
				bytes[row.SubflowID] -= row.Bytes
				weights[row.SubflowID] -= int64(row.Weight)
				if i > 0 && row.TimeNS < rows[i-1].TimeNS {
					t.Fatalf("%d calls on %d subflows: point %d is before the one before", calls, subflows, i)
				}
			}
			for id := range bytes {
				if bytes[id] != 0 || weights[id] != 0 {
					t.Errorf("%d calls on %d subflows: %d bytes and %d segments of subflow %d are missing", calls, subflows, bytes[id], weights[id], id)
				}
			}
		}
	}
}

// TestThinnedAcks: an acknowledgement keeps its number when others are dropped.
func TestThinnedAcks(t *testing.T) {
	o, out := watch(10)
	c := connect(0, 1)
	o.Data(c.Subs[0], mptcp.Up, 0, 0, 1e6, nil)
	for i := range 1000 {
		o.Ack(c.Subs[0], mptcp.Up, int64(i+1), uint64(i)*100, 5000)
	}
	o.End(c, nil)
	var weight int32
	acks := 0
	for _, row := range out.Rows() {
		switch row.Kind {
		case "ack":
			acks++
			weight += row.Weight
			if row.Offset != (row.TimeNS-1)*100 {
				t.Errorf("%+v", row)
			}
		case "window":
			if row.Offset != (row.TimeNS-1)*100+5000 {
				t.Errorf("%+v", row)
			}
		}
	}
	if acks > 21 || acks < 10 || weight != 1000 {
		t.Errorf("%d acknowledgements stand for %d", acks, weight)
	}
}

func TestAllPointsOnRequest(t *testing.T) {
	o, out := watch(-1)
	c := connect(0, 1)
	for i := range 10 * DefaultSamples {
		o.Data(c.Subs[0], mptcp.Up, int64(i), uint64(i), uint64(i+1), nil)
	}
	o.End(c, nil)
	if len(out.Rows()) != 10*DefaultSamples {
		t.Errorf("%d points", len(out.Rows()))
	}
}

// TestManyConnections: the memory for all connections together is bounded.
func TestManyConnections(t *testing.T) {
	const size = 1000
	o, out := watch(0)
	conns := make([]*mptcp.Conn, 3000)
	for i := range conns {
		conns[i] = connect(int32(i), 1)
	}
	for i := range 400 {
		for _, c := range conns {
			o.Data(c.Subs[0], mptcp.Up, int64(i), uint64(i)*size, uint64(i+1)*size, nil)
		}
	}
	if most := crowded + few*len(conns); o.budget.kept > most || o.pool.used > crowdedCalls {
		t.Errorf("%d points and %d calls are kept", o.budget.kept, o.pool.used)
	}
	var bytes int64
	for _, c := range conns {
		o.End(c, nil)
	}
	for _, row := range out.Rows() {
		bytes += row.Bytes
	}
	if bytes != 3000*400*size || o.budget.kept != 0 || o.pool.used != 0 {
		t.Errorf("%d bytes; %d points and %d calls left", bytes, o.budget.kept, o.pool.used)
	}
}

// TestSmallConnections: the number of rows of small connections is limited. A
// connection that becomes large has all its rows, including the first.
func TestSmallConnections(t *testing.T) {
	o, out := watch(0)
	send := func(id int32, bytes int) (rows int) {
		before, c := len(out.Rows()), connect(id, 1)
		for lo := 0; lo < bytes; lo += 1000 {
			o.Data(c.Subs[0], mptcp.Down, int64(lo), uint64(lo), uint64(lo+1000), nil)
			o.Ack(c.Subs[0], mptcp.Down, int64(lo+1), uint64(lo+1000), 1<<20)
		}
		o.End(c, nil)
		return len(out.Rows()) - before
	}
	for id := range int32(400) {
		want := 3 * 99
		if len(out.Rows()) >= SmallRows {
			want = 0
		}
		if rows := send(id, Small-1000); rows != want {
			t.Fatalf("connection %d has %d points, want %d", id, rows, want)
		}
	}
	if rows := send(400, Small); rows != 3*100 {
		t.Errorf("a connection that is not small has %d points", rows)
	}
}

// TestCallsKeptForLater: points built immediately and points built later are
// equal for all times, places and subflows.
func TestCallsKeptForLater(t *testing.T) {
	for seed := range uint64(60) {
		later, rows := watch(1 << 20)
		once, want := watch(-1)
		random := rand.New(rand.NewPCG(2, seed))
		c := connect(0, 4)
		c.Subs[3].ID = 1 << 17
		timeNS, top := int64(1e18), random.Uint64N(1<<40)
		subs := 3 + random.IntN(50)/49
		for range random.IntN(1500) {
			timeNS += random.Int64N(1 << random.IntN(36))
			s, dir := c.Subs[random.IntN(subs)], random.IntN(2)
			lo, size := top-random.Uint64N(10), random.Uint64N(1<<random.IntN(12))
			switch random.IntN(1000) {
			case 0:
				lo += 1 << 33
			case 1:
				timeNS -= 1e9
			}
			original := [3]*mptcp.Sub{nil, s, c.Subs[random.IntN(subs)]}[random.IntN(3)]
			for _, o := range []*Observer{later, once} {
				if size%3 == 0 {
					o.Ack(s, dir, timeNS, lo, uint32(size)<<16)
				} else {
					o.Data(s, dir, timeNS, lo, lo+size, original)
				}
			}
		}
		later.End(c, nil)
		once.End(c, nil)
		if !reflect.DeepEqual(rows.Rows(), want.Rows()) {
			t.Fatalf("seed %d: %d rows, want %d", seed, len(rows.Rows()), len(want.Rows()))
		}
	}
}

// BenchmarkBulk measures the cost per data segment with half an
// acknowledgement, for two alternating connections; "none" measures only the
// calls.
func BenchmarkBulk(b *testing.B) {
	o, _ := watch(0)
	b.Run("sequence", func(b *testing.B) { bulk(b, o) })
	b.Run("none", func(b *testing.B) { bulk(b, observe.None{}) })
}

func bulk(b *testing.B, observer mptcp.Observer) {
	conns := [2]*mptcp.Conn{connect(0, 2), connect(1, 2)}
	n := uint64(0)
	for b.Loop() {
		c := conns[n>>4&1]
		s := c.Subs[n>>3&1]
		observer.Data(s, mptcp.Down, int64(n), n*1400, n*1400+1400, nil)
		observer.Mapping(s, mptcp.Down, int64(n), n*1400, n*1400+1400)
		observer.Ack(s, mptcp.Up, int64(n), 0, 65535)
		observer.Segment(s, mptcp.Down, nil)
		if n&1 == 0 {
			observer.Ack(s, mptcp.Down, int64(n), n*1400, 65535)
		}
		n++
	}
}
