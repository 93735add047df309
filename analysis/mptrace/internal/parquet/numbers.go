package parquet

import (
	"encoding/binary"
	"math/bits"
)

// numbers holds dictionary numbers in blocks. The last block has room for zeros
// at its end.
type numbers struct {
	n      int
	blocks []*block
}

// widthOf returns the bit width of the numbers of n words.
func widthOf(n int) uint { return uint(max(1, bits.Len(uint(n-1)))) }

// append appends the numbers as RLE: all as runs or all bit-packed, whichever
// is shorter.
func (s numbers) append(b []byte, width uint) []byte {
	runs, before := 1, s.blocks[0][0]
	s.each(func(values []uint64) {
		for _, v := range values {
			if v != before {
				runs++
				before = v
			}
		}
	})
	if runs*(2+bytesOf(width)) < s.n*int(width)/8 {
		return s.appendRuns(b, width)
	}
	return s.appendGroups(b, width)
}

func (s numbers) each(take func([]uint64)) {
	for i, b := range s.blocks {
		take(b[:min(len(b), s.n-i*len(b))])
	}
}

func bytesOf(width uint) int { return int(width+7) / 8 }

func (s numbers) appendRuns(b []byte, width uint) []byte {
	value, n := s.blocks[0][0], 0
	s.each(func(values []uint64) {
		for _, v := range values {
			if v != value {
				b = appendRun(b, value, n, width)
				value, n = v, 0
			}
			n++
		}
	})
	return appendRun(b, value, n, width)
}

func appendRun(b []byte, value uint64, n int, width uint) []byte {
	b = binary.AppendUvarint(b, uint64(n)<<1)
	for range bytesOf(width) {
		b = append(b, byte(value))
		value >>= 8
	}
	return b
}

// appendGroups appends bit-packed groups of eight numbers. The last group is
// padded with zeros.
func (s numbers) appendGroups(b []byte, width uint) []byte {
	groups := (s.n + 7) / 8
	b = binary.AppendUvarint(b, uint64(groups)<<1|1)
	end := len(b) + groups*int(width)
	last := s.blocks[len(s.blocks)-1]
	clear(last[s.n-(len(s.blocks)-1)*len(last):])
	s.each(func(values []uint64) {
		for from := 0; from < len(values); from += miniBlock {
			b = appendPacked(b, (*[miniBlock]uint64)(values[from:from+miniBlock]), 0, width)
		}
	})
	return b[:end]
}
