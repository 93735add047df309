package ends

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"mplab/analysis/mptrace/labtest"
)

// counted counts the packets and bytes that a path's middlebox dropped.
type counted struct {
	packets, bytes [2]atomic.Int64
}

// lossy drops a share of all TCP segments and counts them.
func (c *counted) lossy(share float64, seed uint64) labtest.Middlebox {
	var dice [2]*rand.Rand
	for direction := range dice {
		dice[direction] = rand.New(rand.NewPCG(seed, uint64(direction)))
	}
	return labtest.OnTCP(func(direction int, s labtest.Segment) bool {
		if dice[direction].Float64() >= share {
			return true
		}
		c.packets[direction].Add(1)
		c.bytes[direction].Add(int64(len(s.Payload())))
		return false
	})
}

// TestLabOfTwoPaths compares with the drops of a relay between two namespaces
// and with the bytes that the applications received.
func TestLabOfTwoPaths(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	if err := labtest.Missing(); err != nil {
		t.Skipf("no laboratory: %v", err)
	}
	lab, err := labtest.New(labtest.Options{})
	if err != nil {
		t.Skipf("no laboratory: %v", err)
	}
	defer lab.Close()
	var dropped [2]counted
	delays := [2]time.Duration{10 * time.Millisecond, 30 * time.Millisecond}
	for i, path := range lab.Paths {
		path.Shape(delays[i], 20, 1<<22) // the queue must not overflow: its drops are not counted
	}
	dir := t.TempDir()
	stop, err := lab.Capture(dir, "cell")
	if err != nil {
		t.Fatal(err)
	}
	up, down := exchange(t, lab, &dropped)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, "cell-"+name+".pcapng") }
	phone, proxy := []string{file("wlan0"), file("rmnet0")}, []string{file("s1"), file("s2")}
	for _, same := range []bool{true, false} {
		r, err := Match(phone, proxy, Options{SameClock: same})
		if err != nil {
			t.Fatal(err)
		}
		if off := math.Abs(r.Clock.OffsetMS); off > r.Clock.UncertaintyMS || !same && (off > 3 || r.Clock.Path != "wlan0") {
			t.Errorf("clock %+v", r.Clock)
		}
		for i, name := range labtest.ClientInterfaces {
			for direction, called := range []string{"up", "down"} {
				row := r.sum(name, called)
				want, bytes := dropped[i].packets[direction].Load(), dropped[i].bytes[direction].Load()
				t.Logf("%s %s: sent %d, lost %d, dropped %d", name, called, row.Sent, row.Lost, want)
				if row.Lost > want || row.Lost+row.NotJudged < want || row.BytesLost != bytes || row.Unseen > 0 || row.Ambiguous > 0 || row.NotJudged > 5 {
					t.Errorf("%s %s: %+v; dropped %d, %d bytes", name, called, row, want, bytes)
				}
			}
		}
		for _, row := range r.PathEnds {
			least := float64(delays[map[string]int{"wlan0": 0, "rmnet0": 1}[row.Interface]].Milliseconds())
			if low := row.OWDMinMS.Value; row.Delays == 0 || low < least-0.5-r.Clock.UncertaintyMS/4 || low > least+5 {
				t.Errorf("%+v", row)
			}
		}
		for _, row := range r.Reordering {
			if want := map[string]int64{"up": up, "down": down}[row.Direction]; row.Bytes != want || row.Level != "mptcp" || row.UnknownBytes != 0 {
				t.Errorf("%+v; the applications received %d", row, want)
			}
		}
		if len(r.Reordering) != 2 || len(r.PathEnds) != 4 || r.Summary.Flows != 2 {
			t.Errorf("%d and %d rows, %+v", len(r.Reordering), len(r.PathEnds), r.Summary)
		}
		first := 0
		for _, row := range r.Reinjections {
			original, copied := row.OriginalNS, row.CopyNS
			if copied.Known && copied.Value < row.TimeNS+int64(8*time.Millisecond) || row.GainMS.Known != (original.Known && copied.Known) ||
				row.CopyFirst.Value != (copied.Known && (!original.Known || copied.Value < original.Value)) {
				t.Errorf("%+v", row)
			}
			if row.CopyFirst.Value {
				first++
			}
		}
		if first == 0 {
			t.Errorf("no copy came first, of %d; a path was dead for a second", len(r.Reinjections))
		}
		t.Logf("%+v", r.Clock)
	}
}

// exchange transfers bytes over both paths, with losses once both are
// established.
func exchange(t *testing.T, lab *labtest.Lab, dropped *[2]counted) (up, down int64) {
	t.Helper()
	listener, err := lab.Listen(netip.AddrPortFrom(labtest.Server4[labtest.WLAN], 4000), true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	pair, err := lab.Connect(listener, labtest.Dial{Multipath: true})
	if err != nil {
		t.Fatal(err)
	}
	pair.Deadline(40 * time.Second)
	if err := pair.Exchange(1000, 1000); err != nil {
		t.Fatal(err)
	}
	if err := pair.WaitSubflows(1); err != nil {
		t.Fatal(err)
	}
	for i, path := range lab.Paths {
		path.Set(dropped[i].lossy(0.01*float64(1+i), uint64(i)))
	}
	outage := time.AfterFunc(300*time.Millisecond, func() { lab.Paths[labtest.RMNET].Set(dropped[labtest.RMNET].lossy(1, 0)) })
	back := time.AfterFunc(1500*time.Millisecond, func() { lab.Paths[labtest.RMNET].Set(dropped[labtest.RMNET].lossy(0.02, 9)) })
	if err := pair.Exchange(600_000, 6_000_000); err != nil {
		t.Fatal(err)
	}
	outage.Stop()
	back.Stop()
	for _, path := range lab.Paths {
		path.Set(nil)
	}
	time.Sleep(300 * time.Millisecond) // the last dropped packets were sent before the next ones
	if err := pair.Exchange(1000, 1000); err != nil {
		t.Fatal(err)
	}
	if err := pair.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	return pair.Counts(labtest.Up).Received, pair.Counts(labtest.Down).Received
}
