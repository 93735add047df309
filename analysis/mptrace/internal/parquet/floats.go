package parquet

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// distinct numbers the distinct values of a chunk.
type distinct struct {
	values  []uint64
	numbers []*block // the number of each value of the chunk
	slots   []uint32 // hash table with linear probing: 1 + number; 0: free
	most    int      // maximum number of distinct values
}

// manyValues bounds the size of a dictionary, so that lookups stay fast.
const manyValues = 1 << 14

// number numbers the distinct values and reports whether a dictionary is
// worthwhile: at most two thirds of the values are distinct, and at most
// manyValues.
func (d *distinct) number(c *Chunk) bool {
	d.values, d.most = d.values[:0], min(c.n*2/3, manyValues)
	d.slots = grow(d.slots[:0], 1<<bits.Len(uint(2*d.most)))
	clear(d.slots)
	for i, b := range c.blocks {
		if i == len(d.numbers) {
			d.numbers = append(d.numbers, new(block))
		}
		if d.add(b[:min(len(b), c.n-i*len(b))], d.numbers[i]); len(d.values) > d.most {
			return false
		}
	}
	return true
}

func (d *distinct) add(values []uint64, numbers *block) {
	mask := uint64(len(d.slots) - 1)
	shift := 64 - bits.Len64(mask)
	for i, v := range values {
		at := v * 0x9e3779b97f4a7c15 >> shift
		for d.slots[at] != 0 && d.values[d.slots[at]-1] != v {
			at = (at + 1) & mask
		}
		if d.slots[at] == 0 {
			if len(d.values) > d.most {
				return
			}
			d.values = append(d.values, v)
			d.slots[at] = uint32(len(d.values))
		}
		numbers[i] = uint64(d.slots[at] - 1)
	}
}

// floats writes a dictionary if it is worthwhile, otherwise plain values.
func (p *pages) floats(c *Chunk) {
	if p.distinct.number(c) {
		for _, v := range p.distinct.values {
			p.dictionary = appendBits(p.dictionary, Float64, v)
		}
		p.numbers(numbers{c.n, p.distinct.numbers[:len(c.blocks)]}, len(p.distinct.values))
		return
	}
	p.encoding = plain
	p.data = slices.Grow(p.data, 8*c.n)
	c.each(func(values []uint64) {
		for _, v := range values {
			p.data = binary.LittleEndian.AppendUint64(p.data, v)
		}
	})
}
