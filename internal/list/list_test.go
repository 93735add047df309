package list

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type item struct {
	Links[item]
	number int
}

// TestAgainstSlice compares random operations on two lists with those on slices.
func TestAgainstSlice(t *testing.T) {
	var lists [2]List[item, *item]
	var want [2][]*item
	random := rand.New(rand.NewPCG(1, 2))
	for number := range 10_000 {
		at := random.IntN(2)
		l := &lists[at]
		switch n := len(want[at]); {
		case n == 0 || n < 20 && random.IntN(2) == 0:
			e := &item{number: number}
			l.PushBack(e)
			want[at] = append(want[at], e)
		default: // move to the other list
			i := random.IntN(n)
			e := want[at][i]
			l.Remove(e)
			want[at] = slices.Delete(want[at], i, i+1)
			if e.Links != (Links[item]{}) {
				t.Fatal("a removed element has neighbours")
			}
			lists[1-at].PushBack(e)
			want[1-at] = append(want[1-at], e)
			if len(want[1-at]) > 20 {
				lists[1-at].Remove(want[1-at][0])
				want[1-at] = want[1-at][1:]
			}
		}
		for i := range lists {
			var got []*item
			for e := lists[i].Front(); e != nil; e = lists[i].Next(e) {
				got = append(got, e)
			}
			if !slices.Equal(got, want[i]) || lists[i].Len() != len(want[i]) || len(want[i]) > 0 && lists[i].back != want[i][len(want[i])-1] {
				t.Fatalf("step %d: list %d: %v, want %v", number, i, got, want[i])
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	var l List[item, *item]
	e := new(item)
	if n := testing.AllocsPerRun(10, func() { l.PushBack(e); l.Remove(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
