package session

import (
	"io"
	"math"
	"net"

	"mplab/internal/netx"
)

// readBlocks bounds the blocks that one call fills. Each call has a cost, and makes the
// application's TCP acknowledge the bytes and send more.
const readBlocks = 8

// source is the origin of a stream's bytes; see netx.Reader.
type source interface {
	Read(take func() [][]byte, giveBack func()) (int, error)
}

// ReadFrom implements io.ReaderFrom. It reads into the stream's memory without a copy.
func (st *Stream) ReadFrom(r io.Reader) (int64, error) { return st.CopyFrom(r, math.MaxInt64) }

// CopyFrom is ReadFrom that stops as soon as n bytes or more are read.
func (st *Stream) CopyFrom(r io.Reader, n int64) (int64, error) {
	from := source(reader{r})
	if tcp, ok := r.(*net.TCPConn); ok {
		var err error
		if from, err = netx.NewReader(tcp); err != nil {
			return 0, err
		}
	}
	place := place{st: st}
	take, giveBack := place.take, place.giveBack
	total := int64(0)
	for total < n {
		if err := st.awaitRoom(); err != nil {
			return total, err
		}
		k, err := from.Read(take, giveBack)
		if reset := place.filled(k); reset != nil {
			return total, reset
		}
		total += int64(k)
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// awaitRoom waits until the stream accepts a byte.
func (st *Stream) awaitRoom() error {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.await()
}

// reader is a source that takes memory first and holds it while it waits for bytes.
type reader struct{ io.Reader }

// Read implements source.
func (r reader) Read(take func() [][]byte, _ func()) (int, error) {
	to := take()
	if len(to) == 0 {
		return 0, nil
	}
	return r.Reader.Read(to[0])
}

// place is the memory for the next bytes of a stream: the rest of its last block, and
// fresh blocks. Fresh blocks become part of the stream when they hold bytes.
type place struct {
	st    *Stream
	last  *block // nil: no memory is taken
	fresh []*block
	to    [][]byte
}

// take returns memory for at least one byte, or nil if the account has none.
func (p *place) take() [][]byte {
	s := p.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.st.out.full() && s.config.Account.roomOut() <= 0 {
		return nil
	}
	first, last := p.st.out.place()
	p.st.charge()
	p.last, p.to = last, append(p.to[:0], first)
	for s.unsent < s.config.Memory && s.config.Account.room(2) > 0 && len(p.to) < readBlocks {
		b := newBlock()
		p.fresh, p.to = append(p.fresh, b), append(p.to, b.b[:])
	}
	return p.to
}

// giveBack releases the memory that take returned.
func (p *place) giveBack() {
	p.st.s.mu.Lock()
	defer p.st.s.mu.Unlock()
	p.drop()
}

func (p *place) drop() {
	if p.last == nil {
		return
	}
	p.last.drop()
	p.last = nil
	p.keep(0)
	if p.st.reset != nil {
		p.st.out.clear()
	} else {
		p.st.out.release(p.st.out.base)
	}
	p.st.charge()
}

// keep appends the first n fresh blocks to the stream and releases the others.
func (p *place) keep(n int) {
	p.st.out.blocks = append(p.st.out.blocks, p.fresh[:n]...)
	for _, b := range p.fresh[n:] {
		b.drop()
	}
	clear(p.fresh)
	p.fresh = p.fresh[:0]
}

// filled makes the first n bytes of the memory part of the stream. It returns the error
// of a stream that was reset during the read.
func (p *place) filled(n int) error {
	st := p.st
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.reset != nil || n == 0 {
		p.drop()
		return st.reset
	}
	p.keep(max(0, n-len(p.to[0])+blockSize-1) / blockSize)
	st.added(n, p.last)
	p.last = nil
	return nil
}
