package hist

import "math/bits"

// A class spans 1/64 of the power of two below it. Each number below 128 has a
// separate class.
const (
	perOctave = 64
	octaves   = 58 // class(1<<63 − 1) is in the last
)

func class(v uint64) int {
	shift := max(bits.Len64(v)-7, 0)
	return shift*perOctave + int(v>>shift)
}

// lower returns the smallest number of a class.
func lower(class int) uint64 {
	shift := max(class/perOctave-1, 0)
	return uint64(class-shift*perOctave) << shift
}

// middle returns the number in the middle of a class.
func middle(class int) uint64 {
	shift := max(class/perOctave-1, 0)
	return lower(class) + (1<<shift-1)/2
}

// classes is a histogram of numbers by class. Octaves without numbers use no
// memory.
type classes struct {
	octave [octaves]*[perOctave]int64
}

func (c *classes) add(v int64) {
	k := class(uint64(v))
	page := c.octave[k/perOctave]
	if page == nil {
		page = new([perOctave]int64)
		c.octave[k/perOctave] = page
	}
	page[k%perOctave]++
}

// at returns the approximate number at a rank; ranks start at 0.
func (c *classes) at(rank int64) int64 {
	last := 0
	for i, page := range c.octave {
		if page == nil {
			continue
		}
		for j, count := range page {
			if count == 0 {
				continue
			}
			last = i*perOctave + j
			if rank -= count; rank < 0 {
				return int64(middle(last))
			}
		}
	}
	return int64(middle(last))
}
