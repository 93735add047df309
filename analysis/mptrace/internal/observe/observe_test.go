package observe

import (
	"math/rand/v2"
	"slices"
	"testing"

	"mplab/analysis/mptrace/internal/mptcp"
)

// TestUnacked compares with a plain list.
func TestUnacked(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var u Unacked
	var list []Piece
	var next, acked uint64
	for range 20000 {
		switch random.IntN(4) {
		case 0, 1:
			size := random.Uint64N(20) + 1
			p := Piece{Lo: next, Hi: next + size}
			next += size
			if random.IntN(10) == 0 { // a temporary hole
				hole := Piece{Lo: next, Hi: next + 5}
				next += 5
				list = append(list, Piece{Lo: next, Hi: next + 1}, hole)
				u.Add(Piece{Lo: next, Hi: next + 1})
				u.Add(hole)
				next++
			}
			list = append(list, p)
			u.Add(p)
		case 2:
			acked = min(next, acked+random.Uint64N(40))
			want := 0
			list = slices.DeleteFunc(list, func(p Piece) bool {
				if p.Hi <= acked {
					want++
				}
				return p.Hi <= acked
			})
			if got := u.Ack(acked); len(got) != want {
				t.Fatalf("%d acknowledged, want %d", len(got), want)
			}
		case 3:
			if random.IntN(5) == 0 && next > 50 {
				lo := next - random.Uint64N(50)
				hi := lo + random.Uint64N(30) + 1
				list = slices.DeleteFunc(list, func(p Piece) bool { return p.Hi > lo && p.Lo < hi })
				u.Drop(lo, hi)
			}
		}
		var lo, hi uint64 = 1 << 62, 0
		for _, p := range list {
			lo, hi = min(lo, p.Lo), max(hi, p.Hi)
		}
		size, ok := u.Flight()
		if ok != (len(list) > 0) || ok && size != hi-lo {
			t.Fatalf("flight %d, %v; want %d of %d pieces", size, ok, hi-lo, len(list))
		}
	}
}

func TestUnackedIsBounded(t *testing.T) {
	var u Unacked
	for i := range uint64(3 * mostUnacked) {
		u.Add(Piece{Lo: i, Hi: i + 1})
	}
	if size, _ := u.Flight(); size != mostUnacked || cap(u.pieces) > 4*mostUnacked {
		t.Errorf("%d pieces in %d", size, cap(u.pieces))
	}
}

// TestStates: connections that share a cache entry are distinguished, and
// removed ones are gone.
func TestStates(t *testing.T) {
	var states States[int]
	conns := make([]*mptcp.Conn, 1000)
	for i := range conns {
		conns[i] = &mptcp.Conn{ID: int32(i)}
		if states.Get(conns[i]) != nil {
			t.Fatalf("connection %d has a state", i)
		}
		states.Put(conns[i], &i)
	}
	for range 2 {
		for i, c := range conns {
			if at := states.Get(c); at == nil || *at != i {
				t.Fatalf("connection %d: %v", i, at)
			}
		}
	}
	for i, c := range conns {
		if at := states.Take(c); at == nil || *at != i || states.Get(c) != nil || states.Take(c) != nil {
			t.Fatalf("connection %d: %v", i, at)
		}
	}
	if len(states.all) != 0 {
		t.Errorf("%d states are left", len(states.all))
	}
}
