package tables

import (
	"fmt"
	"io"
	"testing"

	"mplab/analysis/mptrace/internal/parquet"
)

// BenchmarkColumns measures the cost of writing a row; the performance targets
// are in ns/value.
func BenchmarkColumns(b *testing.B) {
	b.Run("directions", func(b *testing.B) {
		measure(b, TableDirections, func(i int) Direction {
			return Direction{ConnectionID: int32(i / 6), SubflowID: int32(i % 3), Level: LevelTCP, Direction: Directions[i&1],
				Segments: int64(i % 1000), Bytes: int64(i) * 1000 % 77777, RTTMinMS: Just(float64(i%100) / 10), FirstNS: Just(int64(i) * 1e6)}
		})
	})
	b.Run("points", func(b *testing.B) {
		measure(b, TablePoints, func(i int) Point {
			return Point{ConnectionID: int32(i / 100), Level: LevelMPTCP, Direction: Directions[i&1], TimeNS: 1e18 + int64(i)*12345,
				Kind: [3]string{"data", "ack", "window"}[i%3], Offset: int64(i) * 1400, Bytes: 1400, Weight: 1}
		})
	})
	b.Run("connections", func(b *testing.B) {
		measure(b, TableConnections, func(i int) Connection {
			return Connection{ConnectionID: int32(i), Kind: "mptcp", Client: "10.64.1.2", ClientPort: int32(i), Server: fmt.Sprint("10.65.0.", i%250),
				Token: fmt.Sprintf("%08x", i*77777), Closed: "fin", Interfaces: "wlan0,rmnet0"}
		})
	})
}

func measure[R any](b *testing.B, set Set, row func(int) R) {
	rows := make([]R, 1<<16)
	for i := range rows {
		rows[i] = row(i)
	}
	var stream *Stream[R]
	s := of(&stream).open()
	for i := range catalog {
		if catalog[i].set != set {
			continue
		}
		t := s.writeTo(io.Discard, &catalog[i], &parquet.Pool{})
		n := 0
		for b.Loop() {
			stream.Add(rows[n%len(rows)])
			n++
		}
		s.flush()
		if err := t.close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(len(t.columns)), "ns/value")
	}
}
