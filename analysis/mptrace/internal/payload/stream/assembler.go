package stream

import "slices"

// piecesMax is the maximum number of pieces that wait behind holes.
const piecesMax = 8192

// Assembler puts pieces in order. Bytes in order are read from its Buffer;
// others wait. If two pieces have the same bytes, the first one is used.
type Assembler struct {
	Buffer
	next  uint64 // offset after the last byte of the buffer
	later []piece
	held  int // size of later in bytes
	table *[256]byte
	taken int // bytes of the pool taken for later
	ended bool
}

type piece struct {
	lo, hi  uint64
	data    []byte // nil: not captured
	timeNS  int64
	subflow int32
}

const pieceSize = 64

// NewAssembler returns an assembler that starts at offset 0.
func NewAssembler(p *Pool) Assembler { return Assembler{Buffer: NewBuffer(p)} }

// Ended reports whether the assembler has ended.
func (a *Assembler) Ended() bool { return a.ended }

// Waiting reports whether pieces wait behind a hole.
func (a *Assembler) Waiting() bool { return len(a.later) > 0 }

// Add adds a piece. The caller must not change b before Settle.
func (a *Assembler) Add(offset uint64, b []byte, timeNS int64, subflow int32) {
	a.add(piece{lo: offset, hi: offset + uint64(len(b)), data: b, timeNS: timeNS, subflow: subflow})
}

// Skip adds a piece that was sent but not captured.
func (a *Assembler) Skip(offset, size uint64, timeNS int64, subflow int32) {
	a.add(piece{lo: offset, hi: offset + size, timeNS: timeNS, subflow: subflow})
}

func (a *Assembler) add(p piece) {
	if p.lo < a.next {
		p = p.from(a.next)
	}
	if a.ended || p.hi <= p.lo {
		return
	}
	if a.table != nil {
		p.data = translated(p.data, a.table)
	}
	if p.lo > a.next {
		a.wait(p)
		return
	}
	if len(a.later) == 0 {
		a.deliver(p)
		return
	}
	a.fill(p)
}

// from cuts off the part before an offset.
func (p piece) from(offset uint64) piece {
	if p.data != nil {
		p.data = p.data[min(offset-p.lo, uint64(len(p.data))):]
	}
	p.lo = min(offset, p.hi)
	return p
}

// to cuts off the part from an offset on.
func (p piece) to(offset uint64) piece {
	if p.data != nil {
		p.data = p.data[:offset-p.lo]
	}
	p.hi = offset
	return p
}

func (a *Assembler) deliver(p piece) {
	if p.data == nil {
		a.Miss(p.hi-p.lo, p.timeNS, p.subflow)
	} else {
		a.Append(p.data, p.timeNS, p.subflow)
	}
	a.next = p.hi
}

// fill delivers a piece at next, and the pieces that waited behind it.
func (a *Assembler) fill(p piece) {
	done := 0
	for ; done < len(a.later) && a.later[done].lo <= p.hi; done++ {
		waited := a.later[done]
		a.held -= len(waited.data)
		if waited.lo > a.next {
			a.deliver(p.to(waited.lo))
			p = p.from(waited.lo)
		}
		a.deliver(waited)
		if p.hi <= waited.hi {
			p = waited.from(waited.hi)
		} else {
			p = p.from(waited.hi)
		}
	}
	if p.hi > a.next {
		a.deliver(p)
	}
	a.later = slices.Delete(a.later, 0, done)
	if len(a.later) == 0 {
		a.later = nil
	}
}

// wait keeps a copy of the parts of a piece that are not yet held.
func (a *Assembler) wait(p piece) {
	i, _ := slices.BinarySearchFunc(a.later, p.lo, func(q piece, lo uint64) int {
		if q.hi <= lo {
			return -1
		}
		return 1
	})
	for p.lo < p.hi {
		if i < len(a.later) && a.later[i].lo <= p.lo {
			p = p.from(min(a.later[i].hi, p.hi))
			i++
			continue
		}
		part := p
		if i < len(a.later) && a.later[i].lo < p.hi {
			part = p.to(a.later[i].lo)
		}
		p = p.from(part.hi)
		if part.data != nil {
			part.data = slices.Clone(part.data)
		}
		a.held += len(part.data)
		a.later = slices.Insert(a.later, i, part)
		i++
	}
}

// Settle ends the borrowing of the added pieces: it copies what is unread. If
// more than limit bytes are held, or more than the pool has, it ends the
// assembler and returns false.
func (a *Assembler) Settle(limit int) bool {
	size := a.held + len(a.later)*pieceSize
	if a.ended {
		return true
	}
	if size+a.Size() > limit || len(a.later) > piecesMax || !a.Buffer.Settle() || !a.pool.resize(&a.taken, size) {
		a.End()
		return false
	}
	return true
}

// End releases everything; later pieces are ignored.
func (a *Assembler) End() {
	a.Release()
	if a.pool != nil {
		a.pool.Give(a.taken)
	}
	*a = Assembler{Buffer: Buffer{pool: a.pool}, next: a.next, ended: true}
}

// Translate replaces every byte, starting with the first unread one, by its
// entry in a table.
func (a *Assembler) Translate(table *[256]byte) {
	a.table = table
	a.translate(table)
	for i := range a.later {
		for j, c := range a.later[i].data {
			a.later[i].data[j] = table[c]
		}
	}
}

func translated(b []byte, table *[256]byte) []byte {
	if b == nil {
		return nil
	}
	out := make([]byte, len(b))
	for i, c := range b {
		out[i] = table[c]
	}
	return out
}
