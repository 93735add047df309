package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"mplab/mpflex/internal/transport/frame"
	"mplab/mpflex/internal/transport/sched"
)

// arrivals sends n datagrams up. When all copies that were sent have arrived, it
// returns how often each datagram was delivered.
func (k *pair) arrivals(t *testing.T, n int, scheme *Scheme) []int {
	t.Helper()
	k.agent.mu.Lock()
	k.agent.datagramAge = time.Minute // so that a slow machine drops none
	k.agent.mu.Unlock()
	came := make(chan Datagram, 10*n)
	k.proxy.OnDatagram(func(d Datagram) {
		d.Payload = append([]byte(nil), d.Payload...)
		came <- d
	})
	for i := range n {
		d := Datagram{Association: 5, Label: 200, Payload: binary.BigEndian.AppendUint32([]byte("number"), uint32(i))}
		for !k.agent.SendDatagram(d, scheme) {
			time.Sleep(time.Millisecond)
		}
	}
	for left := 1000; left > 0 && !k.quiet(int64(n)); left-- {
		time.Sleep(10 * time.Millisecond)
	}
	counts := make([]int, n)
	for len(came) > 0 {
		d := <-came
		if d.Association != 5 || d.Label != 200 || len(d.Payload) != 10 {
			t.Fatalf("%+v", d)
		}
		counts[binary.BigEndian.Uint32(d.Payload[6:])]++
	}
	return counts
}

// quiet reports whether the agent has sent n datagrams, and all of them and their
// copies have arrived.
func (k *pair) quiet(n int64) bool {
	k.agent.mu.Lock()
	waiting := k.agent.hasDatagrams()
	for _, p := range k.agent.paths {
		waiting = waiting || len(p.copies) > 0
	}
	sent := k.agent.totals.DatagramsOut + k.agent.totals.DatagramCopies
	k.agent.mu.Unlock()
	var got int64
	for _, p := range k.proxy.Status().Paths {
		got += p.DatagramsIn
	}
	return !waiting && sent >= n && got == sent
}

func scheme(t *testing.T, scheduler string, paths ...string) *Scheme {
	t.Helper()
	s, err := sched.New(scheduler)
	if err != nil {
		t.Fatal(err)
	}
	made := &Scheme{Scheduler: s}
	if len(paths) > 0 {
		made.Paths = func(name string) (allowed, backup bool) {
			for i, p := range paths {
				if p == name {
					return true, i > 0
				}
			}
			return false, false
		}
	}
	return made
}

// TestDatagramsBySchemes: each datagram is delivered once, over the paths of its
// scheme.
func TestDatagramsBySchemes(t *testing.T) {
	const n = 500
	for name, c := range map[string]struct {
		scheme      *Scheme
		least, most [2]int64 // datagrams on each path
	}{
		"the session's own": {nil, [2]int64{0, 0}, [2]int64{n, n}},
		"round robin":       {scheme(t, "roundrobin"), [2]int64{n / 4, n / 4}, [2]int64{3 * n / 4, 3 * n / 4}},
		"single":            {scheme(t, "single"), [2]int64{n, 0}, [2]int64{n, 0}},
		"the other path":    {scheme(t, "single", "path1"), [2]int64{0, n}, [2]int64{0, n}},
		"with a backup":     {scheme(t, "backup", "path1", "path0"), [2]int64{0, n}, [2]int64{0, n}},
		"redundant":         {scheme(t, "redundant"), [2]int64{n / 2, n / 2}, [2]int64{n, n}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newPair(t, Config{}, 2)
			for i, times := range k.arrivals(t, n, c.scheme) {
				if times != 1 {
					t.Errorf("datagram %d came %d times", i, times)
				}
			}
			there, here := k.proxy.Status(), k.agent.Status()
			for i, p := range there.Paths {
				if p.DatagramsIn < c.least[i] || p.DatagramsIn > c.most[i] {
					t.Errorf("path %d brought %d datagrams, not %d to %d", i, p.DatagramsIn, c.least[i], c.most[i])
				}
			}
			out, in := here.Counters, there.Counters
			if out.DatagramsOut != n || in.DatagramsIn != n || (out.DatagramCopies > 0) != (name == "redundant") || in.DatagramDuplicates > out.DatagramCopies {
				t.Errorf("out %+v\nin %+v", out, in)
			}
		})
	}
}

// TestDatagramsWithoutAPath: a datagram without an allowed path is refused, and dropped
// when its last path ends.
func TestDatagramsWithoutAPath(t *testing.T) {
	k := newPair(t, Config{}, 1)
	nowhere, d := scheme(t, "single", "path1"), Datagram{Association: 1, Payload: []byte("x")}
	if k.agent.SendDatagram(d, nowhere) {
		t.Error("it was taken")
	}
	second := k.attach(1)
	k.agent.mu.Lock()
	blocked := second.blocked
	second.blocked = true // as if its TCP had no room
	k.agent.mu.Unlock()
	if !k.agent.SendDatagram(d, nowhere) {
		t.Fatal("it was not taken")
	}
	second.Abandon(errGivenUp)
	<-second.Done()
	k.agent.mu.Lock()
	defer k.agent.mu.Unlock()
	second.blocked = blocked
	if k.agent.hasDatagrams() {
		t.Error("it waits")
	}
}

// TestNumbers: a number is new once, in any order of arrival. Numbers too far behind
// are not new.
func TestNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var n numbers
	seen, highest := map[int64]bool{}, int64(-1)
	for at := int64(0); at < 5<<24; at += random.Int64N(numbersKept / 50) { // the low bits wrap around several times
		if random.IntN(100) == 0 {
			at += numbersKept * random.Int64N(20)
		}
		number := max(0, at-random.Int64N(numbersKept*11/10))
		old := number <= highest-numbersKept
		if got, want := n.add(uint32(number)&(1<<24-1)), !old && !seen[number]; got != want {
			t.Fatalf("%d: new %v, want %v; the highest is %d", number, got, want, highest)
		}
		seen[number] = true
		highest = max(highest, number)
	}
}

// withPath runs f in virtual time, with a locked session and its path. The path accepts
// data and sends nothing.
func withPath(t *testing.T, c Config, f func(t *testing.T, s *Session, p *Path)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Agent, c)
		if err != nil {
			t.Fatal(err)
		}
		p := &Path{s: s, room: 1 << 30}
		p.work.L = &s.mu
		s.mu.Lock()
		s.paths = []*Path{p}
		f(t, s, p)
		s.dropCopies(p)
		s.paths = nil
		s.mu.Unlock()
		_ = s.Close()
		if used := s.config.Budget.Used(); used != 0 {
			t.Errorf("%d bytes are charged for a session that is over", used)
		}
	})
}

// send passes a datagram to a locked session.
func (s *Session) send(t *testing.T, association uint32, scheme *Scheme, payload []byte) {
	t.Helper()
	s.mu.Unlock()
	defer s.mu.Lock()
	if !s.SendDatagram(Datagram{Association: association, Payload: payload}, scheme) {
		t.Error("a datagram was not taken")
	}
}

// sent returns the payloads of the datagrams in a batch.
func (b *batch) sent() (all []string) {
	for i := 1; i < len(b.bytes); i += 2 {
		all = append(all, string(b.bytes[i]))
	}
	return all
}

// TestWaitingDatagramsAreBounded: with any number of schemes, the waiting datagrams of
// a session are charged to the budget and use a bounded part of it. The oldest ones are
// dropped.
func TestWaitingDatagramsAreBounded(t *testing.T) {
	const limit, schemes, each = 16 << 20, 64, 70
	withPath(t, Config{Budget: NewBudget(limit, nil)}, func(t *testing.T, s *Session, p *Path) {
		payload, most := make([]byte, 60_000), int64(0)
		for i := range uint32(schemes) {
			c := scheme(t, "single")
			for range each {
				s.send(t, i, c, payload)
				most = max(most, s.config.Budget.Used())
			}
		}
		if most > limit/8 || most < limit/10 {
			t.Errorf("at most %d of %d bytes were used", most, limit)
		}
		if n := len(s.groups); n > schemes {
			t.Errorf("%d groups", n)
		}
		n := s.totals.DatagramsDropped
		var b batch
		for b.reset(); s.fillDatagram(p, &b); b.reset() {
			n++
		}
		if n != schemes*each {
			t.Errorf("%d datagrams were dropped or sent, not %d", n, schemes*each)
		}
	})
}

// TestDatagramsOfALongQueue: a datagram waits for at most 100 ms, the last one of its
// association for at most 1 s. Associations take turns.
func TestDatagramsOfALongQueue(t *testing.T) {
	withPath(t, Config{}, func(t *testing.T, s *Session, p *Path) {
		wait := func(d time.Duration) {
			s.mu.Unlock()
			time.Sleep(d)
			s.mu.Lock()
		}
		for i := range 5 {
			s.send(t, 1, nil, fmt.Appendf(nil, "a%d", i))
		}
		wait(datagramAge + time.Millisecond)
		for i := range 3 {
			s.send(t, 1, nil, fmt.Appendf(nil, "b%d", i))
		}
		s.send(t, 2, nil, []byte("c"))
		var b batch
		for b.reset(); s.fillDatagram(p, &b); {
		}
		if got := fmt.Sprint(b.sent()); got != "[b0 c b1 b2]" {
			t.Errorf("%s were sent", got)
		}
		for i := range 2 {
			s.send(t, 1, nil, fmt.Appendf(nil, "d%d", i))
		}
		wait(datagramAge + time.Millisecond)
		for b.reset(); s.fillDatagram(p, &b); {
		}
		if got := fmt.Sprint(b.sent()); got != "[d1]" {
			t.Errorf("%s were sent", got)
		}
		s.send(t, 1, nil, []byte("e"))
		wait(datagramAgeMost + time.Millisecond)
		if b.reset(); s.fillDatagram(p, &b) {
			t.Errorf("%s were sent after a second", b.sent())
		}
	})
}

// TestDatagramsAndStreamsShareAPath: while both wait, each gets half of the bytes, for
// any sizes. If only one waits, it gets all.
func TestDatagramsAndStreamsShareAPath(t *testing.T) {
	for _, size := range []int{100, 1200, 50_000} {
		withPath(t, Config{}, func(t *testing.T, s *Session, p *Path) {
			const total = 1 << 20 // bytes of each
			st := &Stream{s: s, id: 1, group: s.defaultGroup, limit: 1 << 30}
			for st.out.end < total {
				place, held := st.out.place()
				st.out.end += uint64(len(place))
				held.drop()
			}
			st.enter()
			for range 200_000 / size {
				s.send(t, 1, nil, make([]byte, size))
			}
			var b batch
			half := func() (datagrams, stream int64) {
				before := p.stats
				for b.reset(); s.hasDatagrams() && st.eager() && s.fillNext(p, &b); b.reset() {
					b.drop()
				}
				return (p.stats.DatagramsOut - before.DatagramsOut) * int64(size+frame.HeaderSize), p.stats.BytesOut - before.BytesOut
			}
			datagrams, stream := half()
			if diff := datagrams - stream; diff > 64<<10 || diff < -64<<10 || stream < 100_000 {
				t.Errorf("datagrams of %d bytes: %d bytes of datagrams, %d of the stream", size, datagrams, stream)
			}
			for range 3 { // no credit is kept
				b.reset()
				if !s.fillNext(p, &b) || len(b.held) == 0 {
					t.Error("the stream has nothing")
				}
				b.drop()
			}
			s.send(t, 1, nil, []byte("x"))
			if b.reset(); !s.fillNext(p, &b) || len(b.held) > 0 {
				t.Error("the next datagram waits for the stream")
			}
			st.out.clear()
			st.reset = errors.New("over")
		})
	}
}
