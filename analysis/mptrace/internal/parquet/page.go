package parquet

import (
	"encoding/binary"
	"slices"
)

// Encodings of values in pages.
const (
	plain         = 0
	rle           = 3
	deltaPacked   = 5
	rleDictionary = 8
)

// pages holds the uncompressed pages of a chunk.
type pages struct {
	dictionary []byte
	words      int // number of words in the dictionary; 0: no dictionary
	data       []byte
	encoding   int64
	distinct   distinct
}

// encode builds the pages of a chunk. Integers are written as differences,
// which suits counters, times and connection numbers; strings use a dictionary.
func (p *pages) encode(f *Field, c *Chunk) {
	p.dictionary, p.words, p.data = p.dictionary[:0], 0, p.data[:0]
	if f.Optional {
		p.levels(c)
	}
	switch {
	case c.n == 0:
		p.encoding = plain
	case f.Type == Bool:
		p.bools(c)
	case f.Type == String && c.Words.many:
		p.texts(c)
	case f.Type == String:
		for _, word := range c.Words.words {
			p.dictionary = appendText(p.dictionary, word)
		}
		if c.varied {
			p.numbers(numbers{c.n, c.blocks}, len(c.Words.words))
		} else {
			p.constant(c)
		}
	case !c.varied:
		p.dictionary = appendBits(p.dictionary, f.Type, c.first)
		p.constant(c)
	case f.Type == Float64:
		p.floats(c)
	default:
		p.encoding = deltaPacked
		p.data = appendDeltas(p.data, c, f.Type)
	}
}

// levels writes which rows have a value, as RLE of one bit each.
func (p *pages) levels(c *Chunk) {
	p.data = append(p.data, 0, 0, 0, 0)
	switch {
	case c.n == c.rows, c.n == 0:
		p.data = binary.AppendUvarint(p.data, uint64(c.rows)<<1)
		p.data = append(p.data, byte(min(c.n, 1)))
	default:
		groups := (c.rows + 7) / 8
		p.data = binary.AppendUvarint(p.data, uint64(groups)<<1|1)
		end := len(p.data) + groups
		for _, known := range c.known {
			p.data = binary.LittleEndian.AppendUint64(p.data, known)
		}
		p.data = p.data[:end]
	}
	binary.LittleEndian.PutUint32(p.data, uint32(len(p.data)-4))
}

// numbers writes values as dictionary numbers.
func (p *pages) numbers(n numbers, words int) {
	p.encoding, p.words = rleDictionary, words
	width := widthOf(words)
	p.data = n.append(append(p.data, byte(width)), width)
}

// constant writes equal values as a dictionary of one word.
func (p *pages) constant(c *Chunk) {
	p.encoding, p.words = rleDictionary, 1
	p.data = appendRun(append(p.data, 1), 0, c.n, 1)
}

func (p *pages) texts(c *Chunk) {
	p.encoding = plain
	c.each(func(values []uint64) {
		for _, v := range values {
			p.data = appendText(p.data, c.Words.words[v])
		}
	})
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

func (p *pages) bools(c *Chunk) {
	p.encoding = plain
	if !c.varied {
		c.spread()
	}
	var packed byte
	n := 0
	c.each(func(values []uint64) {
		for _, v := range values {
			packed |= byte(v) << (n % 8)
			if n++; n%8 == 0 {
				p.data = append(p.data, packed)
				packed = 0
			}
		}
	})
	if n%8 > 0 {
		p.data = append(p.data, packed)
	}
}

// grow extends a slice by n elements with arbitrary content.
func grow[T any](b []T, n int) []T { return slices.Grow(b, n)[:len(b)+n] }

// appendBits appends a value in the plain encoding.
func appendBits(b []byte, t Type, v uint64) []byte {
	if t == Int32 {
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(b, v)
}
