package session

import (
	"net"
	"slices"
	"sync"
)

// blockSize is the unit in which a stream allocates memory, in bytes.
const blockSize = 16 << 10

// block is memory for unacknowledged bytes. Each user holds a reference. The session's
// lock guards the count.
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

// outgoing holds the bytes of a stream that were written and may not have arrived: the
// offsets from base to end.
type outgoing struct {
	blocks    []*block // the first one contains base; each starts at a multiple of blockSize
	base, end uint64
}

// full reports whether the next byte needs another block.
func (o *outgoing) full() bool {
	return o.base&^(blockSize-1)+uint64(len(o.blocks))*blockSize <= o.end
}

// place returns the memory for the next bytes, at least one, and a reference to its
// block. The caller counts the bytes by raising end.
func (o *outgoing) place() ([]byte, *block) {
	if o.full() {
		o.blocks = append(o.blocks, newBlock())
	}
	last := o.blocks[len(o.blocks)-1]
	last.refs++
	return last.b[o.end%blockSize:], last
}

// slices appends the bytes [lo, hi) to the buffers in to, and a reference to each of
// their blocks to held.
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

// release frees the blocks below an offset.
func (o *outgoing) release(to uint64) {
	first := o.base &^ (blockSize - 1)
	n := 0
	for n < len(o.blocks) && first+uint64(n+1)*blockSize <= to {
		o.blocks[n].drop()
		n++
	}
	o.blocks = slices.Delete(o.blocks, 0, n)
	o.base = to
	if o.base == o.end && len(o.blocks) > 0 && o.blocks[0].refs == 1 { // no one fills it
		o.blocks[0].drop()
		o.blocks = o.blocks[:0]
	}
}

// clear releases all blocks.
func (o *outgoing) clear() {
	for _, b := range o.blocks {
		b.drop()
	}
	o.blocks, o.base = nil, o.end
}

// piece is a run of received bytes that starts at an offset.
type piece struct {
	lo   uint64
	data []byte
	held *buffer
}

func (p *piece) hi() uint64 { return p.lo + uint64(len(p.data)) }

// cost returns the memory of a piece, in bytes.
func (p *piece) cost() int { return classes[p.held.class] + pieceCost }

// join appends a small piece that follows, if the buffer has room, and frees the buffer
// of that piece. Otherwise thousands of small messages would use a buffer each.
func (p *piece) join(next piece) bool {
	const small = 512
	if len(next.data) > small || cap(p.data)-len(p.data) < len(next.data) {
		return false
	}
	p.data = append(p.data, next.data...)
	next.held.free()
	return true
}

// incoming holds the received bytes of a stream that the reader has not taken.
type incoming struct {
	next    uint64  // all bytes below have arrived
	ready   []piece // bytes below next that the reader has not taken, in order
	later   pieces  // bytes behind a gap
	waiting int     // bytes in ready and later
	memory  int     // memory of ready and later, in bytes

	behind  int     // bytes in later
	sinceNS int64   // time of the last call of account
	waited  float64 // sum over the bytes in later of their time there, up to sinceNS; ns · bytes
}

// account adds the time that bytes have waited behind a gap. Call it before new bytes
// are added.
func (in *incoming) account(nowNS int64) {
	in.waited += float64(in.behind) * float64(nowNS-in.sinceNS)
	in.sinceNS = nowNS
}

// waitedMS returns the mean time that a byte waited for missing bytes before it, over
// all bytes that are now in order.
func (in *incoming) waitedMS() float64 {
	if in.next == 0 {
		return 0
	}
	return in.waited / float64(in.next) / 1e6
}

// add stores the new bytes of a piece. It reports whether it keeps the piece's buffer.
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

// append takes a piece that starts at or below next and ends above it.
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

// keep stores a piece behind a gap, unless all its bytes are there. It reports whether
// it keeps the buffer.
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

// clear frees all buffers.
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

// classes are the sizes of buffers: a few bytes, a message of one segment, a large
// message in a TLS record, several segments, and the largest payloads.
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
