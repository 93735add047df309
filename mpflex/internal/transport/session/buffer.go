package session

import (
	"net"
	"slices"
	"sync"
)

// blockSize is how much memory a stream takes at a time.
const blockSize = 16 << 10

// block is memory of streams. Whoever uses it holds a reference; all of them
// are counted under the session's lock.
type block struct {
	b    [blockSize]byte
	refs int32
}

var blocks = sync.Pool{New: func() any { return new(block) }}

func newBlock() *block {
	b := blocks.Get().(*block)
	b.refs = 1
	return b
}

func (b *block) drop() {
	if b.refs--; b.refs == 0 {
		blocks.Put(b)
	}
}

// outgoing are the bytes of a stream that were written and are not known to
// have arrived: offsets from base to end.
type outgoing struct {
	blocks    []*block // the first one has base in it; each begins at a multiple of blockSize
	base, end uint64
}

// full says whether the next byte needs another block.
func (o *outgoing) full() bool {
	return o.base&^(blockSize-1)+uint64(len(o.blocks))*blockSize <= o.end
}

// place returns where the next bytes go, at least one, with a reference to
// their block; they count when end is set behind them.
func (o *outgoing) place() ([]byte, *block) {
	if o.full() {
		o.blocks = append(o.blocks, newBlock())
	}
	last := o.blocks[len(o.blocks)-1]
	last.refs++
	return last.b[o.end%blockSize:], last
}

// slices appends the bytes [lo, hi) to what is to be written, and a reference
// to each of their blocks to held.
func (o *outgoing) slices(lo, hi uint64, to net.Buffers, held []*block) (net.Buffers, []*block) {
	first := o.base &^ (blockSize - 1)
	for lo < hi {
		b := o.blocks[(lo-first)/blockSize]
		n := min(hi-lo, blockSize-lo%blockSize)
		to = append(to, b.b[lo%blockSize:lo%blockSize+n])
		b.refs++
		held = append(held, b)
		lo += n
	}
	return to, held
}

// release gives back what lies below an offset.
func (o *outgoing) release(to uint64) {
	first := o.base &^ (blockSize - 1)
	n := 0
	for n < len(o.blocks) && first+uint64(n+1)*blockSize <= to {
		o.blocks[n].drop()
		n++
	}
	o.blocks = slices.Delete(o.blocks, 0, n)
	o.base = to
	if o.base == o.end && len(o.blocks) > 0 && o.blocks[0].refs == 1 { // nobody fills it
		o.blocks[0].drop()
		o.blocks = o.blocks[:0]
	}
}

// clear gives back everything.
func (o *outgoing) clear() {
	for _, b := range o.blocks {
		b.drop()
	}
	o.blocks, o.base = nil, o.end
}

// piece is a run of received bytes that begins at an offset.
type piece struct {
	lo   uint64
	data []byte
	held *buffer
}

func (p *piece) hi() uint64 { return p.lo + uint64(len(p.data)) }

// cost is the memory that a piece takes.
func (p *piece) cost() int { return classes[p.held.class] + pieceCost }

// join takes over the bytes of a small piece that follows, and its buffer, if
// there is room for them. Thousands of small messages would else take a buffer
// each.
func (p *piece) join(next piece) bool {
	const small = 512
	if len(next.data) > small || cap(p.data)-len(p.data) < len(next.data) {
		return false
	}
	p.data = append(p.data, next.data...)
	next.held.free()
	return true
}

// incoming are the bytes of a stream that arrived and were not taken.
type incoming struct {
	next    uint64  // all below has arrived
	ready   []piece // the bytes below next that were not taken, in order
	later   pieces  // what lies behind a gap
	waiting int     // bytes of both
	memory  int     // that both take

	behind  int     // bytes of later
	sinceNS int64   // when the account was made
	waited  float64 // how long bytes were in later, ns · bytes, until then
}

// account adds up how long bytes wait for those before them; it is made
// whenever bytes come, before they do.
func (in *incoming) account(nowNS int64) {
	in.waited += float64(in.behind) * float64(nowNS-in.sinceNS)
	in.sinceNS = nowNS
}

// waitedMS is how long a byte has waited for those before it, the mean over all
// that came in order since.
func (in *incoming) waitedMS() float64 {
	if in.next == 0 {
		return 0
	}
	return in.waited / float64(in.next) / 1e6
}

// add takes received bytes, and keeps those that are new. It says whether it
// took over the memory of the piece.
func (in *incoming) add(p piece) bool {
	if p.hi() <= in.next {
		return false
	}
	if p.lo > in.next {
		return in.keep(p)
	}
	in.append(p)
	for first := in.later.first(); first != nil && first.lo <= in.next; first = in.later.first() {
		late := *first
		in.later.drop()
		in.waiting -= len(late.data)
		in.behind -= len(late.data)
		in.memory -= late.cost()
		if late.hi() > in.next {
			in.append(late)
		} else {
			late.held.free()
		}
	}
	return true
}

// append takes a piece that begins at next or below and ends above.
func (in *incoming) append(p piece) {
	p.data = p.data[in.next-p.lo:]
	p.lo = in.next
	in.next = p.hi()
	in.waiting += len(p.data)
	if n := len(in.ready); n > 0 && in.ready[n-1].join(p) {
		return
	}
	in.memory += p.cost()
	in.ready = append(in.ready, p)
}

// keep keeps a piece behind a gap, unless all of it is there.
func (in *incoming) keep(p piece) bool {
	place := in.later.search(p.lo)
	before := in.later.before(place)
	if before != nil && before.hi() >= p.hi() {
		return false
	}
	if same := in.later.get(place); same != nil && same.lo == p.lo {
		if same.hi() >= p.hi() {
			return false
		}
		in.waiting += len(p.data) - len(same.data)
		in.behind += len(p.data) - len(same.data)
		in.memory += p.cost() - same.cost()
		same.held.free()
		*same = p
		return true
	}
	in.waiting += len(p.data)
	in.behind += len(p.data)
	if before != nil && before.hi() == p.lo && before.join(p) {
		return true
	}
	in.memory += p.cost()
	in.later.insert(place, p)
	return true
}

// clear gives back everything.
func (in *incoming) clear() {
	for _, list := range append(in.later.chunks, in.ready) {
		for _, p := range list {
			p.held.free()
		}
	}
	in.ready, in.later, in.waiting, in.memory, in.behind = nil, pieces{}, 0, 0, 0
}

// buffer is memory for one received payload.
type buffer struct {
	b     []byte
	class int
}

// classes are the sizes of buffers: for a few bytes, for a message of one
// segment, for a record of TLS, for several segments, and for the largest.
var (
	classes = [...]int{512, 2 << 10, 4 << 10, 8 << 10, 32 << 10, 64 << 10}
	buffers [len(classes)]sync.Pool
)

func newBuffer(size int) *buffer {
	class := 0
	for classes[class] < size {
		class++
	}
	b, _ := buffers[class].Get().(*buffer)
	if b == nil {
		b = &buffer{b: make([]byte, classes[class]), class: class}
	}
	return b
}

func (b *buffer) free() { buffers[b.class].Put(b) }
