package parquet

import (
	"sync"
	"unsafe"
)

// Batch is the maximum number of rows that a chunk takes at once.
const Batch = 64

// Chunk collects the values of a column for one row group. Each value is a
// 64-bit pattern: the bits of a float64, 0 or 1 for a bool, a sign-extended
// integer, or for a string the number that Words returns. While all values are
// equal, none is stored.
type Chunk struct {
	Words *Words // only for strings

	pool   *Pool
	rows   int // values and nulls
	n      int // number of values
	first  uint64
	varied bool     // values are stored in blocks
	blocks []*block // all but the last are full
	known  []uint64 // one bit per row, for columns with nulls
}

// block holds values.
type block [1024]uint64

// Append appends values; len(v) ≤ Batch.
func (c *Chunk) Append(v []uint64) {
	c.rows += len(v)
	c.add(v)
}

// Same returns the value that all rows so far have. It returns false if they
// differ, or if there are no rows.
func (c *Chunk) Same() (uint64, bool) { return c.first, !c.varied && c.n > 0 }

// AppendSame appends n more values equal to [Chunk.Same].
func (c *Chunk) AppendSame(n int) {
	c.rows += n
	c.n += n
}

// AppendKnown appends n ≤ Batch rows. Bit i of known is set if row i has a
// value; v holds those values.
func (c *Chunk) AppendKnown(v []uint64, known uint64, n int) {
	at := uint(c.rows % 64)
	if at == 0 {
		c.known = append(c.known, known)
	} else {
		c.known[len(c.known)-1] |= known << at
		if at+uint(n) > 64 {
			c.known = append(c.known, known>>(64-at))
		}
	}
	c.rows += n
	c.add(v)
}

func (c *Chunk) add(v []uint64) {
	if !c.varied {
		if c.n == 0 && len(v) > 0 {
			c.first = v[0]
		}
		if allAre(v, c.first) {
			c.n += len(v)
			return
		}
		c.spread()
	}
	c.store(v)
}

func allAre(v []uint64, first uint64) bool {
	for _, x := range v {
		if x != first {
			return false
		}
	}
	return true
}

// spread stores the equal values collected so far.
func (c *Chunk) spread() {
	var same [Batch]uint64
	for i := range same {
		same[i] = c.first
	}
	n := c.n
	c.n, c.varied = 0, true
	for ; n > 0; n -= min(n, Batch) {
		c.store(same[:min(n, Batch)])
	}
}

func (c *Chunk) store(v []uint64) {
	for len(v) > 0 {
		at := c.n % len(block{})
		if at == 0 {
			c.blocks = append(c.blocks, c.pool.get())
		}
		n := copy(c.blocks[len(c.blocks)-1][at:], v)
		v = v[n:]
		c.n += n
	}
}

// each passes the stored values in order.
func (c *Chunk) each(take func([]uint64)) {
	for i, b := range c.blocks {
		take(b[:min(len(b), c.n-i*len(b))])
	}
}

func (c *Chunk) nulls() int { return c.rows - c.n }

// Size returns the approximate memory of the chunk in bytes.
func (c *Chunk) Size() int {
	size := 8*len(c.known) + len(c.blocks)*8*len(block{})
	if c.Words != nil {
		size += c.Words.size
	}
	return size
}

// reset empties the chunk.
func (c *Chunk) reset() {
	c.pool.put(c.blocks)
	c.rows, c.n, c.varied = 0, 0, false
	c.blocks, c.known = c.blocks[:0], c.known[:0]
	if c.Words != nil {
		c.Words.reset()
	}
}

// bounds returns the smallest and the largest value as signed integers. The
// chunk must not be empty.
func (c *Chunk) bounds() (int64, int64) {
	least, most := int64(c.first), int64(c.first)
	c.each(func(values []uint64) {
		for _, v := range values {
			least, most = min(least, int64(v)), max(most, int64(v))
		}
	})
	return least, most
}

// Pool holds memory that chunks and writers share. It is safe for concurrent
// use.
type Pool struct {
	mu   sync.Mutex
	free []*block

	writing sync.Mutex // held while a chunk is encoded with pages and packed
	pages   pages
	packed  []byte
}

// spare is the maximum number of free blocks.
const spare = 1024

func (p *Pool) get() *block {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	return new(block)
}

func (p *Pool) put(blocks []*block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, blocks[:min(len(blocks), spare-len(p.free))]...)
}

// Words is the dictionary of a chunk of strings.
type Words struct {
	words  []string
	asked  uint64 // number of calls of Of
	last   recent
	recent [16]recent
	index  map[string]uint64
	size   int  // approximate memory in bytes
	many   bool // too many distinct words for a dictionary
}

// recent caches a word that was looked up recently. Most words are constants of
// the program, so their address in memory identifies them.
type recent struct {
	word   string
	number uint64
	known  bool
}

// manyWords distinct words are too many if each occurs fewer than two times on
// average. From then on, each row adds a word.
const manyWords = 1000

// Of returns the number of a word.
func (w *Words) Of(word string) uint64 {
	w.asked++
	if w.many {
		return w.add(word)
	}
	if w.last.known && w.last.word == word {
		return w.last.number
	}
	at := unsafe.StringData(word)
	r := &w.recent[uintptr(unsafe.Pointer(at))>>3%uintptr(len(w.recent))]
	if !r.known || unsafe.StringData(r.word) != at || len(r.word) != len(word) {
		*r = recent{word, w.find(word), true}
	}
	w.last = *r
	return r.number
}

func (w *Words) find(word string) uint64 {
	if n, ok := w.index[word]; ok {
		return n
	}
	n := w.add(word)
	if n > manyWords && n > w.asked/2 {
		w.many = true
		clear(w.index)
		return n
	}
	if w.index == nil {
		w.index = make(map[string]uint64)
	}
	w.index[word] = n
	return n
}

func (w *Words) add(word string) uint64 {
	w.words = append(w.words, word)
	w.size += 16 + len(word)
	return uint64(len(w.words) - 1)
}

func (w *Words) reset() {
	clear(w.words)
	clear(w.index)
	*w = Words{words: w.words[:0], index: w.index}
}
