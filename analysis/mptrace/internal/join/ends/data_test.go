package ends

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWaitingIsThatOfEachByte compares the reassembly queue with one that
// stores each byte.
func TestWaitingIsThatOfEachByte(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		const size = 400
		var w waiting
		w.started = true
		arrived := make([]int64, size) // arrival time of each byte; 0: not yet
		delays := make([]int64, size)
		next, most := 0, 0
		for now := int64(1); next < size; now++ {
			lo := min(next+random.IntN(40), size-1)
			hi := min(lo+1+random.IntN(20), size)
			if random.IntN(4) == 0 {
				lo = next
			}
			w.arrive(uint64(lo), uint64(hi), now)
			for i := lo; i < hi; i++ {
				if arrived[i] == 0 {
					arrived[i] = now
				}
			}
			for next < size && arrived[next] != 0 {
				delays[next] = now - arrived[next]
				next++
			}
			held := 0
			for _, at := range arrived[next:] {
				if at != 0 {
					held++
				}
			}
			most = max(most, held)
		}
		var row Reordering
		w.row(&row)
		waited, sum := int64(0), int64(0)
		for _, d := range delays {
			sum += d
			if d > 0 {
				waited++
			}
		}
		slices.Sort(delays)
		if row.Bytes != size || row.WaitedBytes != waited || row.WaitingMax != int64(most) || row.UnknownBytes != 0 ||
			row.DelayMaxMS.Value != float64(delays[size-1])/1e6 || row.DelayP95MS.Value != float64(delays[size*95/100-1])/1e6 ||
			row.DelayMeanMS.Value != float64(sum)/size/1e6 {
			t.Fatalf("seed %d: %+v; waited %d, most %d, max %d, sum %d", seed, row, waited, most, delays[size-1], sum)
		}
	}
}

func TestWhatTheCaptureMissedIsNotWaitedFor(t *testing.T) {
	var w waiting
	w.started = true
	w.arrive(0, 100, 1e6)
	w.arrive(200, 300, 2e6)
	w.acknowledged(100, 3e6)
	if w.bytes != 100 {
		t.Errorf("%d bytes wait", w.bytes)
	}
	w.acknowledged(300, 4e6) // so the receiver had [100, 200)
	w.arrive(300, 400, 5e6)
	var row Reordering
	w.row(&row)
	if row.Bytes != 300 || row.WaitedBytes != 100 || row.UnknownBytes != 100 || row.DelayMaxMS.Value != 0 || w.next != 400 {
		t.Errorf("%+v", row)
	}
}

func TestDistributionQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{1, 2, 100, exact, 50_000} {
		var d distribution
		var all []int64
		for range n {
			v := int64(random.ExpFloat64()*3e7) - 1e6
			weight := int64(1 + random.IntN(3))
			d.add(v, weight)
			for range weight {
				all = append(all, v)
			}
		}
		slices.Sort(all)
		for _, q := range []float64{0.01, 0.5, 0.99, 1} {
			want := float64(all[max(0, int(q*float64(len(all))+0.9999999)-1)])
			got := d.quantiles(q)[0]
			if off := got - want; n <= exact && off != 0 || off*off > want*want*0.008*0.008+1 {
				t.Errorf("%d values: quantile %f is %f, not %f", n, q, got, want)
			}
		}
	}
}
