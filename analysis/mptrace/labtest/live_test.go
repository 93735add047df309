package labtest_test

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"mplab/analysis/mptrace/labtest"
)

// TestApplicationTruth opens many connections of all kinds concurrently and
// requires the byte counts of their applications.
func TestApplicationTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	t.Parallel()
	dir := t.TempDir()
	want := play(t, scenario{"truth", "many connections over a lossy path", labtest.Options{}, manyKinds}, dir)
	for view, names := range want.Views {
		want.check(t, view, true, analyse(t, captures(dir, names)))
	}
}

func manyKinds(s *stage) {
	s.Paths[labtest.RMNET].Set(labtest.Lossy(0.02, 3))
	var running sync.WaitGroup
	for n := range 72 {
		d := labtest.Dial{Multipath: n%3 != 0}
		if n%5 == 0 {
			d.To = netip.AddrPortFrom(labtest.Server6[labtest.WLAN], port)
		}
		kind := columns{"kind": map[bool]string{true: "mptcp", false: "tcp"}[d.Multipath], "syn_seen": true}
		end, closed := (*labtest.Pair).Close, "fin"
		if n%7 == 3 { // after everything was received, so the count is exact
			end = func(p *labtest.Pair) error {
				time.Sleep(300 * time.Millisecond)
				p.Abort()
				return nil
			}
			closed = map[bool]string{true: "fastclose", false: "rst"}[d.Multipath]
		}
		kind["closed"] = closed
		p := s.connect(d, kind)
		running.Go(func() {
			if err := p.Exchange(int64(500+531*n), int64(60_000-733*n)); err != nil {
				s.Error(n, err)
			}
			if err := end(p); err != nil {
				s.Error(n, err)
			}
		})
	}
	running.Wait()
	cutOff(s)
}

// cutOff aborts transfers in the middle: the count must be between the bytes
// written and the bytes received.
func cutOff(s *stage) {
	for n := range 6 {
		p := s.connect(labtest.Dial{Multipath: n%2 == 0}, columns{"closed": map[bool]string{true: "fastclose", false: "rst"}[n%2 == 0]})
		moved := make(chan error, 1)
		go func() { moved <- p.Move(labtest.Down, 10_000_000) }()
		time.Sleep(30 * time.Millisecond)
		p.Abort()
		<-moved
	}
	time.Sleep(100 * time.Millisecond)
}

// TestManyOpenConnections opens more connections than fit into a table of 1024.
func TestManyOpenConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	t.Parallel()
	dir := t.TempDir()
	want := play(t, scenario{"open", "1100 connections open at once", labtest.Options{Direct: true}, func(s *stage) {
		for n := range 1100 {
			p := s.connect(labtest.Dial{Multipath: n%2 == 0}, columns{"closed": "fin"})
			s.must(p.Exchange(int64(100+n), 200))
		}
		for _, p := range s.pairs {
			s.must(p.Close())
		}
	}}, dir)
	want.check(t, "client", true, analyse(t, captures(dir, want.Views["client"])))
}
