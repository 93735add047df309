package session

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"mplab/mpflex/internal/transport/frame"
)

// text returns random bytes that depend only on the seed.
func text(seed uint64, size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), 1}), size)
}

func digest(t testing.TB, r io.Reader) string {
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%d bytes %x", n, h.Sum(nil)[:8])
}

// TestBothWays: the bytes arrive in both directions, and each direction ends
// separately.
func TestBothWays(t *testing.T) {
	k := newPair(t, Config{}, 2)
	agent, proxy := k.stream("hello")
	if err := agent.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(proxy); err != nil || string(got) != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := proxy.Write([]byte("good")); err != nil {
		t.Fatal(err)
	}
	if _, err := proxy.Write([]byte("bye")); err != nil {
		t.Fatal(err)
	}
	if err := proxy.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(agent); err != nil || string(got) != "goodbye" {
		t.Fatalf("%q, %v", got, err)
	}
	if err := agent.Close(); err != nil {
		t.Fatal(err)
	}
	k.settled()
}

// exchange sends size bytes in each direction on a new stream and compares them.
func (k *pair) exchange(seed uint64, size int64) {
	t := k.t
	st, err := k.agent.Open()
	if err != nil {
		t.Error(err)
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := io.Copy(st, text(seed, size)); err != nil {
			t.Errorf("stream %d: writing: %v", st.ID(), err)
		}
		_ = st.CloseWrite()
	})
	if got, want := digest(t, st), digest(t, text(seed+1, size)); got != want {
		t.Errorf("stream %d: %s down, want %s", st.ID(), got, want)
	}
	both.Wait()
	_ = st.Close()
}

// serve answers the streams of exchange until the session ends. The received bytes
// select the answer.
func (k *pair) serve(sizes map[string]func() io.Reader) {
	for {
		st, err := k.proxy.Accept(context.Background())
		if err != nil {
			return
		}
		go func() {
			got := digest(k.t, st)
			answer, ok := sizes[got]
			if !ok {
				k.t.Errorf("stream %d: %s up", st.ID(), got)
				st.Abort(Aborted)
				return
			}
			if _, err := io.Copy(st, answer()); err != nil {
				k.t.Errorf("stream %d: answering: %v", st.ID(), err)
			}
			_ = st.Close()
		}()
	}
}

func TestManyStreams(t *testing.T) {
	for _, paths := range []int{1, 2, 3} {
		k := newPair(t, Config{}, paths)
		answers := map[string]func() io.Reader{}
		type job struct {
			seed uint64
			size int64
		}
		var jobs []job
		random := rand.New(rand.NewPCG(uint64(paths), 1))
		for i := range 60 {
			j := job{uint64(2 * i), int64(random.IntN(1 << random.IntN(21)))}
			if i == 0 {
				j.size = 8 << 20
			}
			jobs = append(jobs, j)
			answers[digest(t, text(j.seed, j.size))] = func() io.Reader { return text(j.seed+1, j.size) }
		}
		go k.serve(answers)
		var all sync.WaitGroup
		for _, j := range jobs {
			all.Go(func() { k.exchange(j.seed, j.size) })
		}
		all.Wait()
		k.settled()
		if s := k.agent.Status(); s.Unsent != 0 || s.Received != 0 || s.Ended < 59 {
			t.Errorf("%d paths: %+v", paths, s)
		}
	}
}

// TestWindowsOfTheirOwn: each side sends within the window of the other, and accepts
// bytes within its own.
func TestWindowsOfTheirOwn(t *testing.T) {
	for _, windows := range [][2]int{{64 << 10, 512 << 10}, {512 << 10, 64 << 10}} {
		k := newPairOf(t, Config{InitialWindow: windows[0]}, Config{InitialWindow: windows[1]}, 1)
		go k.serve(map[string]func() io.Reader{digest(t, text(1, 2<<20)): func() io.Reader { return text(2, 2<<20) }})
		k.exchange(1, 2<<20)
		k.settled()
	}
}

// TestOpenObeysTheOtherSide: a stream that the other side would refuse is not opened.
func TestOpenObeysTheOtherSide(t *testing.T) {
	k := newPairOf(t, Config{}, Config{MaxStreams: 2}, 1)
	first, _ := k.stream("1")
	k.stream("2")
	if _, err := k.agent.Open(); !errors.Is(err, ErrStreams) || !k.agent.Full() {
		t.Errorf("%v", err)
	}
	first.Abort(Aborted)
	await(t, k.agent, "the end of the stream", func() bool { return !k.agent.full() })
	k.stream("3")
}

// TestKeepaliveOfThePath: a path is pinged after its own keep-alive period, not that of
// the session.
func TestKeepaliveOfThePath(t *testing.T) {
	s, err := New(Proxy, Config{Keepalive: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	a, b := link(t)
	defer a.Close()
	if _, err := s.Attach(Link{Conn: b, TCP: b, Keepalive: 10 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(); err != nil {
		t.Fatal(err)
	}
	frames(t, a, func(h frame.Header, _ []byte) bool { return h.Type == frame.Ping })
}

// TestSlowReader: a stream that is not read does not block other streams.
func TestSlowReader(t *testing.T) {
	k := newPair(t, Config{Window: 256 << 10}, 2)
	stuck, unread := k.stream("x")
	go func() { _, _ = io.Copy(unread, text(1, 4<<20)) }()
	other, served := k.stream("y")
	go func() {
		_, _ = io.Copy(served, text(2, 4<<20))
		_ = served.CloseWrite()
	}()
	if got, want := digest(t, other), digest(t, text(2, 4<<20)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if waiting := k.agent.Status().Received; waiting == 0 || waiting > 256<<10 {
		t.Errorf("%d bytes wait for the reader", waiting)
	}
	if got, want := digest(t, io.LimitReader(stuck, 4<<20)), digest(t, text(1, 4<<20)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestResets(t *testing.T) {
	k := newPair(t, Config{}, 2)
	agent, proxy := k.stream("x")
	agent.Abort(Aborted)
	var reset *ResetError
	if _, err := io.Copy(io.Discard, proxy); !errors.As(err, &reset) || reset.Reason != Aborted {
		t.Errorf("%v", err)
	}
	if _, err := agent.Write([]byte("y")); !errors.As(err, &reset) {
		t.Errorf("%v", err)
	}
	_ = proxy.Close()
	k.settled()
	agent, proxy = k.stream("x")
	_ = k.proxy.Close()
	if _, err := io.Copy(io.Discard, agent); !errors.As(err, &reset) || reset.Reason != SessionOver {
		t.Errorf("%v", err)
	}
	if _, err := proxy.Read(make([]byte, 1)); !errors.As(err, &reset) {
		t.Errorf("%v", err)
	}
	<-k.agent.Done()
	if err := k.agent.Err(); !errors.Is(err, ErrGoAway) {
		t.Errorf("%v", err)
	}
}

// TestWithoutPath: written bytes wait for a path, and the session waits at most
// PathTimeout for one.
func TestWithoutPath(t *testing.T) {
	k := newPair(t, Config{}, 0)
	st, err := k.agent.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write([]byte("early")); err != nil {
		t.Fatal(err)
	}
	k.attach(1)
	other, err := k.proxy.Accept(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(other, got); err != nil || string(got) != "early" {
		t.Errorf("%q, %v", got, err)
	}
	alone, err := New(Agent, Config{PathTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	<-alone.Done()
	if !errors.Is(alone.Err(), ErrNoPath) {
		t.Error(alone.Err())
	}
}

// TestPathsComeAndGo: whichever connections are cut, every byte arrives once and in
// order.
func TestPathsComeAndGo(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 2))
	k := newPair(t, Config{PathTimeout: 20 * time.Second}, 3)
	answers := map[string]func() io.Reader{}
	var sizes []int64
	for i := range 24 {
		size := int64(1 << (10 + random.IntN(14)))
		sizes = append(sizes, size)
		answers[digest(t, text(uint64(2*i), size))] = func() io.Reader { return text(uint64(2*i+1), size) }
	}
	go k.serve(answers)
	stop, cutting, cuts := make(chan struct{}), sync.WaitGroup{}, 0
	cutting.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(random.IntN(10)) * time.Millisecond):
			}
			id := uint8(random.IntN(3))
			side := k.agent
			if random.IntN(2) == 0 {
				side = k.proxy
			}
			side.mu.Lock()
			for _, p := range side.paths {
				if p.link.ID == id {
					switch random.IntN(3) {
					case 0:
						_ = p.link.TCP.SetLinger(0)
						_ = p.link.TCP.Close()
					case 1:
						_ = p.link.TCP.CloseWrite()
					case 2:
						go p.Abandon(errGivenUp)
					}
				}
			}
			side.mu.Unlock()
			time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
			k.attach(id)
			cuts++
		}
	})
	var all sync.WaitGroup
	for i, size := range sizes {
		all.Go(func() { k.exchange(uint64(2*i), size) })
	}
	all.Wait()
	close(stop)
	cutting.Wait()
	k.settled()
	again := k.agent.Status().Counters.SentAgain + k.proxy.Status().Counters.SentAgain
	t.Logf("%d cuts, %d bytes sent again", cuts, again)
	if cuts < 5 || again == 0 {
		t.Errorf("%d cuts, %d bytes sent again: nothing was tried", cuts, again)
	}
}

// TestCloseTellsTheOtherSide: a program may end as soon as Close has returned.
func TestCloseTellsTheOtherSide(t *testing.T) {
	for range 20 {
		k := newPair(t, Config{}, 0)
		paths := []*Path{k.attach(0), k.attach(1)}
		_ = k.agent.Close()
		for i, p := range paths {
			select {
			case <-p.Done():
			default:
				t.Fatalf("path %d is still open", i)
			}
		}
		<-k.proxy.Done()
		if err := k.proxy.Err(); !errors.Is(err, ErrGoAway) {
			t.Fatal(err)
		}
	}
}
