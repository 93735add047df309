package session

import (
	"io"
	"math"
	"net"

	"mplab/internal/netx"
)

// readBlocks is how many blocks are filled at once at most: each call costs, and
// makes the application's TCP acknowledge and go on.
const readBlocks = 8

// source is where a stream reads from; see netx.Reader.
type source interface {
	Read(take func() [][]byte, giveBack func()) (int, error)
}

// ReadFrom implements io.ReaderFrom: what is read is not copied.
func (st *Stream) ReadFrom(r io.Reader) (int64, error) { return st.CopyFrom(r, math.MaxInt64) }

// CopyFrom is ReadFrom that stops as soon as n bytes, or some more, are read.
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

// awaitRoom waits until a byte may be written.
func (st *Stream) awaitRoom() error {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.await()
}

// reader is a source that waits with its memory.
type reader struct{ io.Reader }

// Read implements source.
func (r reader) Read(take func() [][]byte, _ func()) (int, error) {
	to := take()
	if len(to) == 0 {
		return 0, nil
	}
	return r.Reader.Read(to[0])
}

// place is where the next bytes of a stream go: the rest of its last block, and
// blocks behind it that become the stream's when there is something in them.
type place struct {
	st    *Stream
	last  *block // nil: nothing is taken
	fresh []*block
	to    [][]byte
}

// take returns memory, at least for a byte; nothing when there is none.
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

// giveBack gives back what was taken.
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

// keep makes the first n of the blocks behind the last one the stream's, and
// gives back the others.
func (p *place) keep(n int) {
	p.st.out.blocks = append(p.st.out.blocks, p.fresh[:n]...)
	for _, b := range p.fresh[n:] {
		b.drop()
	}
	clear(p.fresh)
	p.fresh = p.fresh[:0]
}

// filled makes the first n bytes of what was taken the stream's. Its error is
// that of a stream that was reset meanwhile.
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
