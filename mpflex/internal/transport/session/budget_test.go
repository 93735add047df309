package session

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mplab/mpflex/internal/transport/frame"
)

// peak returns a function that stops sampling and returns the peak use of a budget.
func peak(t *testing.T, b *Budget) func() int64 {
	var most atomic.Int64
	stop := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for {
			most.Store(max(most.Load(), b.Used()))
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Microsecond):
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		sampling.Wait()
	})
	return most.Load
}

// slowly is a reader that reads few bytes at a time.
type slowly struct{ io.Reader }

func (s slowly) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return s.Reader.Read(b[:min(len(b), 16<<10)])
}

// TestTinyBudget: with any number of slow readers, all bytes arrive and are right, and
// memory stays within the budget.
func TestTinyBudget(t *testing.T) {
	const streams, size, limit = 40, 1 << 20, 32 << 20
	b := NewBudget(limit, nil)
	k := newPair(t, Config{Budget: b, InitialWindow: 64 << 10}, 2)
	most := peak(t, b)
	go func() {
		for {
			st, err := k.proxy.Accept(context.Background())
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(st, slowly{st})
				_ = st.Close()
			}()
		}
	}()
	var all sync.WaitGroup
	for i := range uint64(streams) {
		st, err := k.agent.Open()
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			_, _ = io.Copy(st, text(i, size))
			_ = st.CloseWrite()
		})
		all.Go(func() {
			if got, want := digest(t, slowly{st}), digest(t, text(i, size)); got != want {
				t.Errorf("stream %d: %s, want %s", i, got, want)
			}
			_ = st.Close()
		})
	}
	all.Wait()
	k.settled()
	if most() > limit || b.reset.Load() != 0 || b.refused.Load() != 0 {
		t.Errorf("at most %d of %d bytes were used, %d streams were reset and %d refused", most(), limit, b.reset.Load(), b.refused.Load())
	}
	if most() < limit/8 {
		t.Errorf("at most %d bytes were used: nothing was tried", most())
	}
}

// stuck opens streams that are not read at the proxy and fills their windows.
func (k *pair) stuck(streams int) []*Stream {
	k.t.Helper()
	var all []*Stream
	for range streams {
		st, err := k.agent.Open()
		if err != nil {
			k.t.Fatal(err)
		}
		all = append(all, st)
		go func() { _, _ = io.Copy(st, text(1, 8<<20)) }()
	}
	for range streams {
		if _, err := k.proxy.Accept(context.Background()); err != nil {
			k.t.Fatal(err)
		}
	}
	return all
}

// full waits until a session receives no more bytes.
func full(t *testing.T, s *Session) int {
	t.Helper()
	for last, since := -1, time.Now(); time.Since(since) < 300*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if n := s.Status().Received; n != last {
			last, since = n, time.Now()
		}
	}
	return s.Status().Received
}

// TestOthersHoldTheBudget: streams whose readers have stopped hold all promises.
// Another stream still makes progress.
func TestOthersHoldTheBudget(t *testing.T) {
	const limit = 64 << 20
	b := NewBudget(limit, nil)
	k := newPair(t, Config{Budget: b}, 2)
	for range 30 { // readers that have taken enough bytes for large windows
		st, other := k.stream("x")
		go func() { _, _ = io.Copy(st, text(1, 16<<20)) }()
		if _, err := io.CopyN(io.Discard, other, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if promised := b.promised.Load(); promised > limit/4 || promised < limit/16 {
		t.Errorf("%d bytes are promised", promised)
	}
	waiting := full(t, k.proxy)
	if waiting < 30*200<<10 || b.Used() < limit/4 {
		t.Errorf("%d bytes wait, %d are used: nothing was tried", waiting, b.Used())
	}
	agent, proxy := k.stream("y")
	go func() {
		_, _ = io.Copy(proxy, text(5, 1<<20))
		_ = proxy.CloseWrite()
	}()
	go func() {
		_, _ = io.Copy(agent, text(6, 1<<20))
		_ = agent.CloseWrite()
	}()
	var both sync.WaitGroup
	both.Go(func() {
		if got, want := digest(t, agent), digest(t, text(5, 1<<20)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
	_, _ = io.ReadFull(proxy, make([]byte, 1))
	if got, want := digest(t, proxy), digest(t, text(6, 1<<20)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	both.Wait()
	if b.reset.Load() != 0 {
		t.Errorf("%d streams were reset", b.reset.Load())
	}
}

// TestHoarder: one client's streams are never read and hold more bytes than the budget
// allows. It loses the largest ones. Another client's streams continue. The shortage is
// reported once per shortageEvery.
func TestHoarder(t *testing.T) {
	const limit = 32 << 20
	var reports atomic.Int64
	start := time.Now()
	b := NewBudget(limit, func(Shortage) { reports.Add(1) })
	b.deadlock = 200 * time.Millisecond
	hoarder := newPairOf(t, Config{}, Config{Account: b.Account("hoarder")}, 2)
	other := newPairOf(t, Config{}, Config{Account: b.Account("other")}, 2)
	most := peak(t, b)
	streams := hoarder.stuck(100)
	answers := map[string]func() io.Reader{}
	for i := range uint64(20) {
		answers[digest(t, text(2*i, 1<<20))] = func() io.Reader { return text(2*i+1, 1<<20) }
	}
	go other.serve(answers)
	var all sync.WaitGroup
	for i := range uint64(20) {
		all.Go(func() { other.exchange(2*i, 1<<20) })
	}
	all.Wait()
	full(t, hoarder.proxy)
	lost := 0
	for _, st := range streams {
		var reset *ResetError
		if st.mu(func() { errors.As(st.reset, &reset) }); reset != nil && reset.Reason == NoMemory {
			lost++
		}
	}
	if b.reset.Load() == 0 || lost == len(streams) || int64(lost) != b.reset.Load()+b.refused.Load() {
		t.Errorf("%d streams were lost; the proxy reset %d and refused %d", lost, b.reset.Load(), b.refused.Load())
	}
	if own := hoarder.proxy.memory.Load(); own > limit/2 {
		t.Errorf("the session holds %d bytes", own)
	}
	if most() > limit {
		t.Errorf("%d bytes were used", most())
	}
	if got, most := reports.Load(), int64(time.Since(start)/shortageEvery)+1; got < 1 || got > most {
		t.Errorf("%d reports of a shortage, want 1 to %d", got, most)
	}
	if _, st := hoarder.stream("z"); st == nil {
		t.Error("the session opens no stream any more")
	}
}

// mu runs f with the session locked.
func (st *Stream) mu(f func()) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	f()
}

// TestSessionsOfAClientShareAnAccount: a client's sessions open streams until their
// half of the budget is used. Another client is not affected.
func TestSessionsOfAClientShareAnAccount(t *testing.T) {
	const limit = 16 << 20
	b := NewBudget(limit, nil)
	account := b.Account("hoarder")
	open := int64(0)
	for range 4 {
		k := newPairOf(t, Config{}, Config{Account: account}, 1)
		for {
			st, err := k.agent.Open()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = st.Write([]byte("x"))
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if _, err = k.proxy.Accept(ctx); err == nil {
				open++
			}
			cancel()
			if err == nil {
				continue
			}
			var reset *ResetError
			if _, err := st.Read(make([]byte, 1)); !errors.As(err, &reset) || reset.Reason != NoMemory {
				t.Errorf("refused with %v", err)
			}
			break
		}
	}
	if most := int64(limit / 2 / streamCost); open > most || open < most*3/4 {
		t.Errorf("the sessions have %d streams, memory for half of the budget is %d", open, most)
	}
	other := newPairOf(t, Config{}, Config{Account: b.Account("other")}, 1)
	for range 10 {
		other.stream("x")
	}
}

// TestBusySession: many streams leave less memory for buffers than their answers need
// at the same time. All readers read, so all answers arrive: the session slows down and
// resets nothing.
func TestBusySession(t *testing.T) {
	const streams, answer = 600, 2 * blockSize
	const limit = streams * streamCost * 5 / 4 // leaves a fifth: 3 MB for 20 MB of answers
	agent, proxy := NewBudget(limit, nil), NewBudget(limit, nil)
	k := newPairOf(t, Config{Budget: agent}, Config{Budget: proxy}, 2)
	most := peak(t, proxy)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range streams {
		for k.agent.config.Account.pressure() == short || k.proxy.config.Account.pressure() == short {
			time.Sleep(time.Millisecond) // until the first bytes are acknowledged
		}
		st, other := k.stream("x")
		all.Go(func() {
			<-begin
			_, _ = io.ReadFull(other, make([]byte, 1))
			if _, err := io.Copy(other, text(uint64(st.ID()), answer)); err != nil {
				t.Errorf("stream %d: answering: %v", st.ID(), err)
			}
			_ = other.Close()
		})
		all.Go(func() {
			<-begin
			_ = st.CloseWrite()
			if n, err := io.Copy(io.Discard, st); n != answer || err != nil {
				t.Errorf("stream %d: %d bytes, %v", st.ID(), n, err)
			}
			_ = st.Close()
		})
	}
	close(begin)
	all.Wait()
	for name, b := range map[string]*Budget{"agent": agent, "proxy": proxy} {
		if b.reset.Load() != 0 || b.refused.Load() != 0 {
			t.Errorf("%s: %d streams were reset and %d refused", name, b.reset.Load(), b.refused.Load())
		}
	}
	if most() > limit+leastData || most() < limit/10*9 {
		t.Errorf("at most %d of %d bytes were used", most(), limit)
	}
}

// TestStuckReadersGiveWay: downloads whose readers have stopped hold all memory for
// sent bytes. They are reset only after standstill. Then another stream of the same
// client makes progress.
func TestStuckReadersGiveWay(t *testing.T) {
	b := NewBudget(4<<20, nil)
	b.standstill = 2 * time.Second
	k := newPairOf(t, Config{Window: 64 << 10}, Config{Budget: b, Window: 64 << 10}, 1)
	stream := func() (st, other *Stream) {
		st, other = k.stream("x")
		_, _ = io.ReadFull(other, make([]byte, 1))
		return st, other
	}
	st, other := stream()
	begun := time.Now()
	var stuck []*Stream
	for range 140 {
		_, other := stream()
		stuck = append(stuck, other)
	}
	for _, other := range stuck {
		go func() { _, _ = io.Copy(other, text(1, 1<<20)) }()
	}
	full(t, k.agent)
	if room := k.proxy.config.Account.roomOut(); room > 0 {
		t.Fatalf("memory for %d bytes is left", room)
	}
	go func() {
		_, _ = io.Copy(other, text(2, 1<<20))
		_ = other.CloseWrite()
	}()
	if got, want := digest(t, st), digest(t, text(2, 1<<20)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	reset := 0
	for _, st := range stuck {
		st.mu(func() {
			if st.reset != nil {
				reset++
			}
		})
	}
	if took := time.Since(begun); reset == 0 || reset == len(stuck) || took < b.standstill {
		t.Errorf("%d streams were reset within %v", reset, took)
	}
}

// TestNoMemoryToOpen: a session opens no stream while its budget is used up, and opens
// one afterwards.
func TestNoMemoryToOpen(t *testing.T) {
	k := newPair(t, Config{Budget: NewBudget(4<<20, nil)}, 1)
	var open []*Stream
	for {
		st, err := k.agent.Open()
		if errors.Is(err, ErrMemory) {
			break
		}
		if err != nil || len(open) > 1000 {
			t.Fatalf("%d streams, %v", len(open), err)
		}
		open = append(open, st)
	}
	for _, st := range open {
		_ = st.Close()
	}
	k.settled()
	if _, err := k.agent.Open(); err != nil {
		t.Error(err)
	}
}

// TestSmallMessages: messages of one byte use at most a few times their size in memory,
// in order or behind a gap.
func TestSmallMessages(t *testing.T) {
	for name, first := range map[string]uint32{"in order": 0, "behind a gap": 1} {
		t.Run(name, func(t *testing.T) {
			s, conn := peer(t, Config{})
			const n = 50_000
			var b []byte
			for i := range uint32(n) {
				b = append(b, data(0, 1, first+i, "x")...)
			}
			if _, err := conn.Write(b); err != nil {
				t.Fatal(err)
			}
			for s.Status().Received < n {
				time.Sleep(time.Millisecond)
			}
			if used := s.memory.Load(); used > streamCost+4*n {
				t.Errorf("%d bytes are held of %d", used, n)
			}
		})
	}
}

// TestMessagesFullOfGaps: a peer sends every other byte, so that each byte needs a
// buffer. Its stream is reset before the memory is used up.
func TestMessagesFullOfGaps(t *testing.T) {
	const limit = 8 << 20
	b := NewBudget(limit, nil)
	b.deadlock = 100 * time.Millisecond
	s, conn := peer(t, Config{Budget: b})
	most := peak(t, b)
	go func() {
		var frames []byte
		for i := range uint32(100_000) {
			frames = append(frames, data(0, 1, 2*i+1, "x")...)
		}
		_, _ = conn.Write(frames)
	}()
	var reset bool
	for !reset {
		var head [frame.HeaderSize]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatal(err)
		}
		h, err := frame.Parse(&head)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.CopyN(io.Discard, conn, int64(h.Size))
		reset = h.Type == frame.Reset && Reason(h.Seq) == NoMemory
	}
	if most() > limit {
		t.Errorf("%d bytes were used", most())
	}
	if err := s.Err(); err != nil {
		t.Errorf("the session ended: %v", err)
	}
}

// TestResetsThatNobodyAnswers: the memory for refused streams is bounded.
func TestResetsThatNobodyAnswers(t *testing.T) {
	s, conn := peer(t, Config{MaxStreams: 10, Budget: NewBudget(4<<20, nil)})
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	for id := uint32(1); s.Err() == nil; id += 2 {
		if _, err := conn.Write(data(0, id, 0, "x")); err != nil {
			break
		}
		if id > 100_000 {
			t.Fatal("the session goes on")
		}
	}
	<-s.Done()
	if !errors.Is(s.Err(), ErrMemory) {
		t.Error(s.Err())
	}
}

// TestAnswersThatNobodyReads: the answers that wait for a peer that only writes are
// bounded.
func TestAnswersThatNobodyReads(t *testing.T) {
	s, conn := peer(t, Config{})
	ping := append(frame.Header{Type: frame.Ping, Size: 8}.Append(nil), "12345678"...)
	var many []byte
	for range 10_000 {
		many = append(many, ping...)
	}
	for range 1000 {
		if _, err := conn.Write(many); err != nil {
			break
		}
	}
	<-s.Done()
	if !errors.Is(s.Err(), ErrProtocol) {
		t.Error(s.Err())
	}
}
