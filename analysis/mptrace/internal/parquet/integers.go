package parquet

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// deltaBlock is the number of differences in a block of four miniblocks.
const (
	deltaBlock = 128
	miniBlock  = deltaBlock / 4
)

// appendDeltas appends the values as DELTA_BINARY_PACKED: the first value, and
// blocks of differences. Each miniblock of 32 differences has the bit width
// that its largest one needs. Differences of int32 wrap around at 32 bits.
func appendDeltas(b []byte, c *Chunk, t Type) []byte {
	b = binary.AppendUvarint(b, deltaBlock)
	b = binary.AppendUvarint(b, deltaBlock/miniBlock)
	b = binary.AppendUvarint(b, uint64(c.n))
	b = binary.AppendVarint(b, int64(c.first))
	e := deltas{b: b, before: c.first, narrow: t == Int32}
	skip := 1
	c.each(func(values []uint64) {
		e.add(values[skip:])
		skip = 0
	})
	if e.n > 0 {
		e.flush()
	}
	return e.b
}

// deltas encodes block by block.
type deltas struct {
	b      []byte
	before uint64
	narrow bool // int32
	n      int
	d      [deltaBlock]uint64
}

func (e *deltas) add(values []uint64) {
	for len(values) > 0 {
		n := min(len(values), deltaBlock-e.n)
		d, before := e.d[e.n:][:n], e.before
		if e.narrow {
			for i, v := range values[:n] {
				d[i] = uint64(int32(v - before))
				before = v
			}
		} else {
			for i, v := range values[:n] {
				d[i] = v - before
				before = v
			}
		}
		e.before = before
		values = values[n:]
		if e.n += n; e.n == deltaBlock {
			e.flush()
		}
	}
}

// flush writes a block: the minimum difference, the bit widths of the
// miniblocks, and the differences minus the minimum.
func (e *deltas) flush() {
	for i := e.n; i < deltaBlock; i++ {
		e.d[i] = e.d[e.n-1]
	}
	least, most := int64(e.d[0]), [deltaBlock / miniBlock]int64{}
	for m := range most {
		mini := (*[miniBlock]uint64)(e.d[m*miniBlock:])
		top := int64(mini[0])
		for _, d := range mini {
			least, top = min(least, int64(d)), max(top, int64(d))
		}
		most[m] = top
	}
	e.b = binary.AppendVarint(e.b, least)
	widths := len(e.b)
	e.b = append(e.b, 0, 0, 0, 0)
	for m := 0; m*miniBlock < e.n; m++ {
		above := uint64(most[m] - least)
		if e.narrow {
			above &= math.MaxUint32
		}
		width := uint(bits.Len64(above))
		e.b[widths+m] = byte(width)
		e.b = appendPacked(e.b, (*[miniBlock]uint64)(e.d[m*miniBlock:]), uint64(least), width)
	}
	e.n = 0
}

// appendPacked appends the values minus least, bit-packed at width bits,
// starting with the lowest bit.
func appendPacked(b []byte, values *[miniBlock]uint64, least uint64, width uint) []byte {
	if width == 0 {
		return b
	}
	mask := uint64(1)<<width - 1
	var word uint64
	have := uint(0)
	for _, v := range values {
		v = (v - least) & mask
		word |= v << have
		if have += width; have >= 64 {
			b = binary.LittleEndian.AppendUint64(b, word)
			have -= 64
			word = v >> (width - have)
		}
	}
	if have > 0 {
		b = binary.LittleEndian.AppendUint32(b, uint32(word)) // 32 values of an odd width end with half a word
	}
	return b
}
