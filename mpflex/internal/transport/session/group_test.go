package session

import (
	"bytes"
	"strings"
	"testing"

	"mplab/mpflex/internal/transport/sched"
)

// waiting returns a group with streams that have these numbers of bytes to send.
func waiting(sizes ...int) (*group, []*Stream) {
	g := &group{scheme: &Scheme{Scheduler: sched.Scheduler(nil)}}
	var streams []*Stream
	for i, size := range sizes {
		st := &Stream{id: uint32(2*i + 1), group: g, limit: 1 << 30}
		st.out.end = uint64(size)
		st.enter()
		streams = append(streams, st)
	}
	return g, streams
}

// order places messages of a group, of 1000 bytes each, until none is left or their
// number is most. It returns the stream of each message.
func order(g *group, most int) string {
	var text bytes.Buffer
	for range most {
		st := g.next()
		if st == nil {
			break
		}
		st.next += min(1000, st.sendable())
		g.placed(st)
		text.WriteByte('a' + byte(st.id/2))
	}
	return text.String()
}

func TestOrderOfStreams(t *testing.T) {
	many := func(of string, n int) string { return strings.Repeat(of, n) }
	for _, c := range []struct {
		name  string
		sizes []int
		want  string
	}{
		{"short ones, each in one go", []int{3000, 2000, 2500}, "aaabbccc"},
		{"their starts first, then each in one go", []int{20_000, 40_000}, many("a", 17) + "bbba" + "bbba" + "bbba" + many("b", 31)},
	} {
		g, _ := waiting(c.sizes...)
		if got := order(g, 1000); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
		if g.waits() {
			t.Errorf("%s: something is left", c.name)
		}
	}
}

// TestLongStreamsTakeTurns: they alternate after each message.
func TestLongStreamsTakeTurns(t *testing.T) {
	g, _ := waiting(1<<20, 1<<20, 1<<20)
	order(g, 600) // beyond the last threshold
	if got := order(g, 9); got != "abcabcabc" && got != "bcabcabca" && got != "cabcabcab" {
		t.Error(got)
	}
}

// TestLongStreamsAreNotStarved: with any number of short streams, long ones get their
// share.
func TestLongStreamsAreNotStarved(t *testing.T) {
	g, streams := waiting(1<<20, 1<<20)
	order(g, 400) // beyond the last threshold
	before := streams[0].next + streams[1].next
	for i := range 100 {
		st := &Stream{id: uint32(2*i + 101), group: g, limit: 1 << 30}
		st.out.end = 4000
		st.enter()
		order(g, 4)
	}
	if share := streams[0].next + streams[1].next - before; share != 100*1000 {
		t.Errorf("%d bytes of the long streams beside 300 messages of short ones", share)
	}
}

func TestStreamsThatLeave(t *testing.T) {
	g, streams := waiting(3000, 3000, 3000)
	streams[1].leave()
	streams[0].limit = 0 // its window is closed
	if got := order(g, 10); got != "ccc" {
		t.Error(got)
	}
	if streams[0].queued || streams[1].queued {
		t.Error("they are said to be queued")
	}
	streams[0].limit = 3000
	streams[0].enter()
	if got := order(g, 10); got != "aaa" {
		t.Error(got)
	}
}

// TestSchemesThatNothingUses: a session removes the groups of unused schemes and bounds
// those in use.
func TestSchemesThatNothingUses(t *testing.T) {
	s, err := New(Agent, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // ends with the test
	open := func() *Stream {
		st, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		st.SetScheme(scheme(t, "single"))
		return st
	}
	kept := open()
	for range 5000 {
		st := open()
		st.mu(func() { s.forget(st) })
	}
	if n := len(s.groups); n > 3 {
		t.Errorf("%d groups for the schemes of one stream", n)
	}
	for range mostGroups {
		open()
	}
	if n := len(s.groups); n != mostGroups {
		t.Errorf("%d groups", n)
	}
	if kept.group == s.defaultGroup || open().group != s.defaultGroup {
		t.Error("another scheme than the last one is given up")
	}
}
