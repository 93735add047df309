package stream

import "slices"

// piecesMax bounds how many pieces wait behind holes.
const piecesMax = 8192

// Assembler puts pieces in order. What is in order is read from its Buffer;
// what is not waits. Of two pieces for the same bytes the first is taken.
type Assembler struct {
	Buffer
	next  uint64 // offset behind the last byte of the buffer
	later []piece
	held  int // bytes in later
	table *[256]byte
	taken int // of the pool, for later
	ended bool
}

type piece struct {
	lo, hi  uint64
	data    []byte // nil: not captured
	timeNS  int64
	subflow int32
}

const pieceSize = 64

// NewAssembler returns an assembler that waits for offset 0.
func NewAssembler(p *Pool) Assembler { return Assembler{Buffer: NewBuffer(p)} }

// Ended says whether no more will come out of the assembler.
func (a *Assembler) Ended() bool { return a.ended }

// Waiting says whether pieces wait behind a hole.
func (a *Assembler) Waiting() bool { return len(a.later) > 0 }

// Add takes a piece. b must stay as it is until Settle.
func (a *Assembler) Add(offset uint64, b []byte, timeNS int64, subflow int32) {
	a.add(piece{lo: offset, hi: offset + uint64(len(b)), data: b, timeNS: timeNS, subflow: subflow})
}

// Skip takes a piece that was sent and not captured.
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

// from cuts off what lies before an offset.
func (p piece) from(offset uint64) piece {
	if p.data != nil {
		p.data = p.data[min(offset-p.lo, uint64(len(p.data))):]
	}
	p.lo = min(offset, p.hi)
	return p
}

// to cuts off what lies at an offset and beyond.
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

// fill delivers a piece at next, and what waited behind it.
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

// wait keeps a copy of those parts of a piece that are not there yet.
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

// Settle ends the borrowing of the pieces that were added. It returns false,
// and the assembler has ended, when more than limit bytes are held, or more
// than the pool has.
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

// End forgets everything; what comes later is not taken.
func (a *Assembler) End() {
	a.Release()
	if a.pool != nil {
		a.pool.Give(a.taken)
	}
	*a = Assembler{Buffer: Buffer{pool: a.pool}, next: a.next, ended: true}
}

// Translate replaces every byte from the first unread one on by its entry in
// a table.
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
