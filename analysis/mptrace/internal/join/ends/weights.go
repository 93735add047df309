package ends

import (
	"math"
	"math/bits"
	"slices"
)

// distribution holds weighted values: exactly while there are few, otherwise in
// classes 1/64 wide.
type distribution struct {
	few      []weighted
	classes  map[int32]int64
	min, max int64
	weight   int64
}

type weighted struct{ value, weight int64 }

// exact is the maximum number of exact values.
const exact = 1024

func (d *distribution) add(value, weight int64) {
	if weight <= 0 {
		return
	}
	if d.weight == 0 {
		d.min, d.max = value, value
	}
	d.min, d.max = min(d.min, value), max(d.max, value)
	d.weight += weight
	if n := len(d.few); n > 0 && d.few[n-1].value == value {
		d.few[n-1].weight += weight
		return
	}
	if d.classes == nil {
		if d.few = append(d.few, weighted{value, weight}); len(d.few) <= exact {
			return
		}
		d.classes = map[int32]int64{}
		for _, w := range d.few {
			d.classes[class(w.value)] += w.weight
		}
		d.few = nil
		return
	}
	d.classes[class(value)] += weight
}

// class returns the class number of a value; class numbers are in the order of
// values.
func class(v int64) int32 {
	if v < 0 {
		return -class(-v)
	}
	if v < 128 {
		return int32(v)
	}
	shift := int32(63-bits.LeadingZeros64(uint64(v))) - 6
	return shift<<6 + int32(v>>shift)
}

// middle returns the value in the middle of a class.
func middle(c int32) float64 {
	if c < 0 {
		return -middle(-c)
	}
	if c < 128 {
		return float64(c)
	}
	shift := c>>6 - 1
	return (float64(c-shift<<6) + 0.5) * math.Exp2(float64(shift))
}

// quantiles returns one quantile per part, in the order of the parts: the
// lowest value that at least this part of the weight does not exceed.
func (d *distribution) quantiles(parts ...float64) []float64 {
	type step struct {
		value  float64
		weight int64
	}
	var steps []step
	for _, w := range d.few {
		steps = append(steps, step{float64(w.value), w.weight})
	}
	for c, n := range d.classes {
		steps = append(steps, step{max(float64(d.min), min(float64(d.max), middle(c))), n})
	}
	slices.SortFunc(steps, func(a, b step) int {
		if a.value < b.value {
			return -1
		} else if a.value > b.value {
			return 1
		}
		return 0
	})
	out := make([]float64, len(parts))
	for i, p := range parts {
		need, sum := int64(math.Ceil(p*float64(d.weight))), int64(0)
		for _, s := range steps {
			if sum += s.weight; sum >= need {
				out[i] = s.value
				break
			}
		}
	}
	return out
}
