package sched

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// wifi and lte return the idle paths of nikravesh2016.
func wifi() Path {
	return Path{ID: 0, RTT: 50 * ms, MinRTT: 50 * ms, Rate: 880e3, Window: 44e3, Room: 3000}
}

func lte() Path {
	return Path{ID: 1, RTT: 70 * ms, MinRTT: 70 * ms, Rate: 1148e3, Window: 80e3, Room: 3000}
}

func with(p Path, change func(*Path)) Path {
	change(&p)
	return p
}

func TestPlaces(t *testing.T) {
	full := func(p *Path) { p.Room = 0 }
	backup := func(p *Path) { p.Backup = true }
	stalled := func(p *Path) { p.Stalled = true }
	queued := func(n int) func(*Path) { return func(p *Path) { p.Queued = n } }
	message := Message{Size: 1400, Left: 100_000, Sent: 50_000}
	for _, c := range []struct {
		name      string
		scheduler string
		message   Message
		paths     []Path
		want      Paths
	}{
		{"the shorter one", "minrtt", message, []Path{wifi(), lte()}, One(0)},
		{"what has room", "minrtt", message, []Path{with(wifi(), full), lte()}, One(1)},
		{"nothing has room", "minrtt", message, []Path{with(wifi(), full), with(lte(), full)}, 0},
		{"no path", "minrtt", message, nil, 0},
		{"a backup is not used", "minrtt", message, []Path{with(wifi(), full), with(lte(), backup)}, 0},
		{"the backup, when it is all there is", "minrtt", message, []Path{with(lte(), backup)}, One(0)},
		{"the backup, when the other is stalled", "minrtt", message, []Path{with(wifi(), stalled), with(lte(), backup)}, One(1)},
		{"all are stalled", "minrtt", message, []Path{with(wifi(), stalled), with(lte(), stalled)}, One(0)},
		{"the shorter one", "txdelay", message, []Path{wifi(), lte()}, One(0)},
		{"a full window", "txdelay", message, []Path{with(wifi(), queued(44e3)), lte()}, One(1)},
		{"the shorter one", "earliest", message, []Path{wifi(), lte()}, One(0)},
		{"not yet worth the longer one", "earliest", message, []Path{with(wifi(), queued(7000)), lte()}, One(0)},
		{"worth the longer one", "earliest", message, []Path{with(wifi(), queued(11000)), lte()}, One(1)},
		{"nothing is known yet", "earliest", message, []Path{{ID: 4, Room: 1}}, One(0)},
		{"the first", "single", message, []Path{lte(), wifi()}, One(1)},
		{"the first, full: the caller waits", "single", message, []Path{with(wifi(), full), lte()}, One(0)},
		{"the first", "backup", message, []Path{wifi(), lte()}, One(0)},
		{"the first stalled", "backup", message, []Path{with(wifi(), stalled), lte()}, One(1)},
		{"a small message", "redundant", Message{Size: 1400}, []Path{wifi(), lte()}, One(0) | One(1)},
		{"a long stream", "redundant", message, []Path{wifi(), lte()}, One(0)},
		{"a long stream's beginning", "redundant", Message{Size: 1400, Left: 1 << 20}, []Path{wifi(), lte()}, One(0)},
	} {
		s, err := New(c.scheduler)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Place(c.message, c.paths); got != c.want {
			t.Errorf("%s, %s: %b, want %b", c.scheduler, c.name, got, c.want)
		}
	}
}

func TestRoundRobinTakesTurns(t *testing.T) {
	s, err := New("roundrobin")
	if err != nil {
		t.Fatal(err)
	}
	paths := []Path{with(wifi(), func(p *Path) { p.ID = 7 }), lte(), with(lte(), func(p *Path) { p.ID = 200 })}
	var got []int
	for range 6 {
		where := s.Place(Message{Size: 1}, paths)
		for i := range paths {
			if where.Has(i) {
				got = append(got, i)
			}
		}
	}
	if !slices.Equal(got, []int{1, 0, 2, 1, 0, 2}) {
		t.Error(got)
	}
}

// TestAnyPaths: for any state of the paths, a scheduler chooses only among them, and
// always chooses if all have room.
func TestAnyPaths(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range Names() {
		s, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			paths, roomy := make([]Path, random.IntN(6)), true
			for i := range paths {
				paths[i] = Path{
					ID: uint8(random.Uint32()), Backup: random.IntN(3) == 0, Stalled: random.IntN(3) == 0, RTT: time.Duration(random.IntN(3)) * ms,
					MinRTT: time.Duration(random.IntN(3)) * ms, Rate: float64(random.IntN(3)) * 1e5, Window: random.IntN(3) * 1e4,
					Queued: random.IntN(3) * 1e4, Room: random.IntN(2) * 1000,
				}
				roomy = roomy && paths[i].Room > 0
			}
			where := s.Place(Message{Size: 1 + random.IntN(2000), Left: random.IntN(1 << 20), Sent: random.Uint64N(1 << 20)}, paths)
			if where>>len(paths) != 0 {
				t.Fatalf("%s: %b of %d paths", name, where, len(paths))
			}
			if where == 0 && roomy && len(paths) > 0 {
				t.Fatalf("%s: none of %+v", name, paths)
			}
		}
	}
}

func TestNames(t *testing.T) {
	if s, err := New(""); err != nil || s != (earliest{}) {
		t.Errorf("%T, %v", s, err)
	}
	if _, err := New("best"); err == nil || !strings.Contains(err.Error(), "there are backup, earliest, minrtt") {
		t.Error(err)
	}
}
