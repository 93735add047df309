package session

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"mplab/mpflex/internal/transport/frame"
)

// readFrame reads one frame of a path and processes it.
func (p *Path) readFrame(r *bufio.Reader) error {
	head, err := r.Peek(frame.HeaderSize)
	if err != nil {
		return err
	}
	h, err := frame.Parse((*[frame.HeaderSize]byte)(head))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	_, _ = r.Discard(frame.HeaderSize)
	var held *buffer
	if h.Size > 0 {
		held = newBuffer(int(h.Size))
		if _, err := io.ReadFull(r, held.b[:h.Size]); err != nil {
			held.free()
			return err
		}
	}
	s := p.s
	if h.Type == frame.Data {
		s.slow(h.Stream)
	}
	s.mu.Lock()
	if err := s.err; err != nil {
		s.mu.Unlock()
		if held != nil {
			held.free()
		}
		return err
	}
	p.heardNS = s.nowNS()
	p.taken += uint64(frame.HeaderSize) + uint64(h.Size)
	if h.Type == frame.Datagram {
		take, fresh := s.datagram, s.takeDatagram(p, h)
		s.mu.Unlock()
		if take != nil && fresh {
			label, _ := frame.SplitDatagramSeq(h.Seq)
			take(Datagram{h.Stream, label, held.b[:h.Size]})
		}
		held.free()
		return nil
	}
	kept, err := s.take(p, h, held)
	if len(p.control) > mostControl && err == nil {
		err = fmt.Errorf("%w: answers are requested and not read", ErrProtocol)
	}
	s.mu.Unlock()
	if !kept && held != nil {
		held.free()
	}
	return err
}

// mostControl bounds the answers that wait to be sent on a path, in bytes.
const mostControl = 1 << 20

// take processes a frame. It reports whether the payload is kept.
func (s *Session) take(p *Path, h frame.Header, held *buffer) (bool, error) {
	var b []byte
	if held != nil {
		b = held.b[:h.Size]
	}
	switch h.Type {
	case frame.Data, frame.Ack, frame.Reset:
		return s.takeOfStream(p, h, b, held)
	case frame.Ping:
		p.control = frame.Header{Type: frame.Pong, Size: 8}.Append(p.control)
		p.control = append(p.control, b...)
		p.work.Signal()
	case frame.Pong:
		if binary.BigEndian.Uint64(b) == p.pings {
			p.pingNS = 0
		}
	case frame.PathEnd:
		s.pathEnded(h, binary.BigEndian.Uint64(b))
	case frame.GoAway:
		return false, s.goAway()
	}
	return false, nil
}

func (s *Session) goAway() error {
	go s.end(ErrGoAway, false)
	return io.EOF
}

func (s *Session) takeOfStream(p *Path, h frame.Header, b []byte, held *buffer) (bool, error) {
	st, err := s.peerStream(h.Stream)
	if err != nil {
		return false, err
	}
	switch {
	case h.Type == frame.Reset:
		s.takeReset(p, h, st)
		return false, nil
	case st == nil && h.Type == frame.Data && h.Flags&frame.Fin != 0:
		s.answerEnd(p, h)
		return false, nil
	case st == nil || st.reset != nil:
		return false, nil
	case h.Type == frame.Ack:
		return false, st.takeAck(h.Seq, binary.BigEndian.Uint32(b))
	}
	p.stats.MessagesIn++
	p.stats.BytesIn += int64(len(b))
	st.stats.carried(p).In += int64(len(b))
	st.movedNS = p.heardNS
	if h.Flags&frame.Again != 0 {
		p.stats.CopiesIn += int64(len(b))
	}
	return st.takeData(h, b, held)
}

// answerEnd acknowledges the end of a stream that is over: the first acknowledgement
// may have been lost with a path.
func (s *Session) answerEnd(p *Path, h frame.Header) {
	end := h.Seq + uint32(h.Size)
	p.control = frame.Header{Type: frame.Ack, Size: 4, Stream: h.Stream, Seq: end + 1}.Append(p.control)
	p.control = binary.BigEndian.AppendUint32(p.control, end)
	p.work.Signal()
}

// takeReset ends a stream and answers the reset.
func (s *Session) takeReset(p *Path, h frame.Header, st *Stream) {
	if h.Flags&frame.Answered != 0 {
		if st != nil && st.resetWhy != 0 {
			st.resetWhy = 0
			st.settle()
		}
		return
	}
	p.control = frame.Header{Type: frame.Reset, Flags: frame.Answered, Stream: h.Stream}.Append(p.control)
	p.work.Signal()
	if st != nil && st.reset == nil {
		st.over(&ResetError{Reason: Reason(h.Seq)})
		st.settle()
	}
}

// takeAck processes an acknowledgement: the offset that arrived and the new limit for
// sending.
func (st *Stream) takeAck(acked, limit uint32) error {
	upTo := frame.Unwrap(st.acked, acked)
	if end := st.out.end; upTo > st.next+1 || upTo > st.next && !(st.finSent && upTo == end+1) {
		return fmt.Errorf("%w: bytes of stream %d are acknowledged that were not sent", ErrProtocol, st.id)
	}
	if upTo > st.acked {
		st.acked, st.stillNS = upTo, st.s.nowNS()
		if upTo >= st.out.end {
			st.writable.Broadcast() // wakes Flush
		}
		st.out.release(min(upTo, st.out.end))
		st.charge()
	}
	if to := frame.Unwrap(st.limit, limit); to > st.limit {
		st.limit, st.stillNS = to, st.s.nowNS()
		st.enter()
		st.s.wake()
	}
	st.offer()
	st.settle()
	return nil
}

// takeData processes the bytes of a data frame. It reports whether it keeps held.
func (st *Stream) takeData(h frame.Header, b []byte, held *buffer) (bool, error) {
	lo := frame.Unwrap(st.in.next, h.Seq)
	hi := lo + uint64(len(b))
	switch {
	case hi > st.granted || lo > hi:
		return false, fmt.Errorf("%w: stream %d goes beyond its window", ErrProtocol, st.id)
	case st.finSeen && (hi > st.finAt || h.Flags&frame.Fin != 0 && hi != st.finAt):
		return false, fmt.Errorf("%w: stream %d continues after its end", ErrProtocol, st.id)
	}
	if h.Flags&frame.Fin != 0 && !st.finSeen {
		if last := st.in.later.last(); last != nil && last.hi() > hi || st.in.next > hi {
			return false, fmt.Errorf("%w: stream %d ends before received bytes", ErrProtocol, st.id)
		}
		st.finSeen, st.finAt = true, hi
	}
	before, waiting := st.in.next, st.in.waiting
	if waiting == 0 {
		st.stillNS = st.movedNS
	}
	st.in.account(st.movedNS)
	kept := len(b) > 0 && st.in.add(piece{lo, b, held})
	st.s.received += st.in.waiting - waiting
	st.charge()
	if len(b) > 0 && !kept {
		st.s.totals.Duplicates += int64(len(b))
	}
	if !st.closed && (st.in.next > before || st.finSeen && st.in.next == st.finAt) {
		st.readable.Signal()
	}
	if st.finSeen && st.in.next == st.finAt {
		if st.ackedNow <= st.finAt {
			st.dueAck()
		}
	} else if !st.ackSoon {
		st.ackSoon = true
		st.s.watchOver()
	}
	return kept, nil
}
