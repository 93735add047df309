package uplink

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mplab/internal/netx"
	"mplab/internal/testkit"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
)

// cutter relays the first connection to a proxy, and cuts the others. For each step it
// forwards a number of the proxy's bytes, discards further bytes for 300 ms, and resets
// both ends. After the last step it relays everything. So the proxy's TCP gets
// acknowledgements of bytes that the agent never reads.
type cutter struct {
	proxy    netip.AddrPort
	steps    []int64
	accepted int
	begin    chan struct{} // closed when cutting must start
	left     atomic.Int64  // steps
	wasted   atomic.Int64  // bytes read and not forwarded
}

func (c *cutter) start(t *testing.T) netip.AddrPort {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	c.begin = make(chan struct{})
	c.left.Store(int64(len(c.steps)))
	var serving sync.WaitGroup
	serving.Go(func() {
		for ; ; c.accepted++ {
			near, err := listener.AcceptTCP()
			if err != nil {
				return
			}
			far, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(c.proxy))
			if err != nil {
				_ = near.Close()
				continue
			}
			t.Cleanup(func() {
				_, _ = near.Close(), far.Close()
			})
			n := c.accepted
			serving.Go(func() {
				_, _ = io.Copy(far, near)
				_ = far.CloseWrite()
			})
			serving.Go(func() { c.relay(near, far, n) })
		}
	})
	t.Cleanup(func() { // before the connections are closed, after the uplink has ended
		_ = listener.Close()
	})
	return netx.AddrPort(listener.Addr())
}

// relay forwards the proxy's bytes on the nth connection.
func (c *cutter) relay(near, far *net.TCPConn, n int) {
	if n == 0 || n > len(c.steps) {
		_, _ = io.Copy(near, far)
		_ = near.CloseWrite()
		return
	}
	<-c.begin
	_, _ = io.CopyN(near, far, c.steps[n-1])
	_ = far.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	wasted, _ := io.CopyN(io.Discard, far, 256<<10)
	c.wasted.Add(wasted)
	netx.Abort(near)
	netx.Abort(far)
	c.left.Add(-1)
}

// TestAttachIsCut: a connection breaks at any step of its attach during a download.
// Every byte arrives each time.
func TestAttachIsCut(t *testing.T) {
	for _, test := range []struct {
		private bool
		steps   []int64
	}{
		{false, []int64{0, 1, 61}},
		{false, []int64{62, 63, 2000}},
		{true, []int64{0, 1000, 1700}},
		{true, []int64{1750, 1800, 1850}},
		{true, []int64{1900, 2000, 20_000}},
	} {
		t.Run(fmt.Sprintf("private %v, %v", test.private, test.steps), func(t *testing.T) {
			t.Parallel()
			proxy, _ := serveEcho(t, test.private)
			c := &cutter{proxy: proxy, steps: test.steps}
			o := Options{Proxy: c.start(t), Secret: testSecret, Paths: []Path{{}, {}}}
			if test.private {
				var err error
				if o.Private, err = identity.NewAgent(testSecret, identity.Options{}); err != nil {
					t.Fatal(err)
				}
			}
			u, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { u.Run(ctx) })
			defer running.Wait()
			defer cancel()
			st, err := u.Open()
			if err != nil {
				t.Fatal(err)
			}
			_ = st.SetDeadline(time.Now().Add(60 * time.Second))
			content := func() io.Reader { return rand.NewChaCha8([32]byte{1}) }
			var size atomic.Int64
			running.Go(func() {
				chunk, r := make([]byte, 16<<10), content()
				for c.left.Load() > 0 || size.Load() == 0 {
					time.Sleep(time.Millisecond)
					_, _ = io.ReadFull(r, chunk)
					n, err := st.Write(chunk)
					if size.Add(int64(n)); err != nil {
						t.Errorf("at byte %d: %v", size.Load(), err)
						return
					}
				}
				_ = st.CloseWrite()
			})
			close(c.begin)
			total, err := compareAll(st, content())
			if err != nil || total != size.Load() {
				t.Errorf("%d of %d bytes: %v", total, size.Load(), err)
			}
			if c.left.Load() > 0 || c.wasted.Load() == 0 {
				t.Errorf("%d steps are left; %d bytes were not passed on: nothing was tried", c.left.Load(), c.wasted.Load())
			}
			t.Logf("%d bytes, %d were not passed on", total, c.wasted.Load())
		})
	}
}

// compareAll reads to the end and compares.
func compareAll(got, want io.Reader) (total int64, err error) {
	chunk, expected := make([]byte, 16<<10), make([]byte, 16<<10)
	for {
		n, err := got.Read(chunk)
		_, _ = io.ReadFull(want, expected[:n])
		if !bytes.Equal(chunk[:n], expected[:n]) {
			return total, fmt.Errorf("wrong bytes behind %d", total)
		}
		total += int64(n)
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// TestRecoveredPathIsKept: a stalled path that recovers while its replacement is
// prepared is kept. The new connection is closed before its attach.
func TestRecoveredPathIsKept(t *testing.T) {
	proxy, _ := serveEcho(t, true)
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accept := func() (near, far *net.TCPConn) {
		_ = listener.SetDeadline(time.Now().Add(testkit.Patience))
		near, err := listener.AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		if far, err = net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(proxy)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = near.Close(), far.Close() })
		return near, far
	}
	events := make(chan string, 100)
	o := Options{
		Proxy: netx.AddrPort(listener.Addr()), Secret: testSecret, Paths: []Path{{}}, Session: session.Config{Keepalive: time.Hour},
		Log: func(e Event) { events <- e.What },
	}
	if o.Private, err = identity.NewAgent(testSecret, identity.Options{}); err != nil {
		t.Fatal(err)
	}
	u, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { u.Run(ctx) })
	defer running.Wait()
	defer cancel()
	until := func(want string) {
		t.Helper()
		for {
			select {
			case got := <-events:
				if got == want {
					return
				}
				if got == session.Ended || got == session.Attached {
					t.Fatalf("%s instead of %s", got, want)
				}
			case <-time.After(testkit.Patience):
				t.Fatalf("did not come: %s", want)
			}
		}
	}

	near, far := accept()
	var stopped sync.Mutex // locked: nothing is relayed to the proxy
	go func() { _, _ = io.Copy(near, far) }()
	go func() {
		chunk := make([]byte, 64<<10)
		for n, err := 0, error(nil); err == nil; {
			n, err = near.Read(chunk)
			stopped.Lock()
			_, _ = far.Write(chunk[:n])
			stopped.Unlock()
		}
	}()
	until(session.Attached)
	st, err := u.Open()
	if err != nil {
		t.Fatal(err)
	}
	var sent, echoed atomic.Int64
	fill, filled := context.WithCancel(t.Context())
	defer filled()
	running.Go(func() {
		chunk := make([]byte, 16<<10)
		for n, err := 0, error(nil); err == nil; echoed.Add(int64(n)) {
			n, err = st.Read(chunk)
		}
	})
	var writing sync.WaitGroup
	writing.Go(func() {
		chunk := make([]byte, 16<<10)
		for n, err := 0, error(nil); err == nil && fill.Err() == nil; sent.Add(int64(n)) {
			n, err = st.Write(chunk)
		}
	})
	stopped.Lock()
	until(session.Stalled)
	second, other := accept()
	go func() {
		_, _ = io.Copy(other, second)
		_ = other.Close()
	}()
	filled()
	stopped.Unlock()
	until(session.Recovered)
	// With bytes in flight, the path can stall again on a busy machine.
	writing.Wait()
	testkit.Eventually(t, "an idle path", func() bool {
		paths := u.Session().Status().Paths
		return echoed.Load() == sent.Load() && len(paths) == 1 && !paths[0].Stalled
	})
	_ = other.SetReadDeadline(time.Now().Add(testkit.Patience))
	_, _ = io.Copy(second, other) // until the agent has closed it
	if status := u.Session().Status(); len(status.Paths) != 1 || status.Paths[0].Incarnation != 1 {
		t.Errorf("%+v", status.Paths)
	}
}
