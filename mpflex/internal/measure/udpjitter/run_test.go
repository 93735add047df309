package udpjitter

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/config"
	"mplab/mpflex/internal/forward/socks"
	"mplab/mpflex/internal/forward/udprelay"
)

// testPatience bounds the wait for any expected event. No test checks a duration.
const testPatience = 20 * time.Second

// impatient is for runs in which no more datagrams can arrive.
var impatient = &patience{last: time.Millisecond, totals: time.Millisecond, asks: 2}

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// nothingLeft checks at the end of the test that there are as many goroutines as now.
func nothingLeft(t *testing.T) {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	t.Cleanup(func() {
		for deadline := time.Now().Add(testPatience); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
			}
		}
	})
}

// runUntilEnd runs a function until the end of the test.
func runUntilEnd(t *testing.T, run func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func echo(t *testing.T) netip.AddrPort {
	t.Helper()
	e, err := ListenEcho(t.Context(), loopback)
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, e.Run)
	return e.Addr()
}

func options(target netip.AddrPort) Options {
	return Options{Target: target, Size: 100, Period: time.Millisecond, Duration: 40 * time.Millisecond}
}

// network relays between a client and an echo server. follow decides what to forward
// for a datagram: none, one, or several.
func network(t *testing.T, server netip.AddrPort, follow func(m message, datagram []byte) [][]byte) netip.AddrPort {
	t.Helper()
	near, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, func(ctx context.Context) {
		stop := context.AfterFunc(ctx, func() { near.Close() })
		defer stop()
		var client netip.AddrPort
		buffer := make([]byte, 2000)
		for {
			n, from, err := near.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			to := client
			if from != server {
				client, to = from, server
			}
			m, err := parseMessage(buffer[:n])
			if err != nil {
				t.Error(err)
			}
			for _, datagram := range follow(m, slices.Clone(buffer[:n])) {
				_, _ = near.WriteToUDPAddrPort(datagram, to)
			}
		}
	})
	return netx.AddrPort(near.LocalAddr())
}

// memory is a path to an echo server in memory. Its datagrams take no time. follow decides
// as in network.
type memory struct {
	server *Echo
	follow func(m message, datagram []byte) [][]byte
	back   chan []byte
	closed chan struct{}
}

// inMemory returns options with a path in memory, for a run in a bubble of synctest.
func inMemory(follow func(m message, datagram []byte) [][]byte) Options {
	o := options(loopback)
	o.path = &memory{newEcho(), follow, make(chan []byte, 1000), make(chan struct{})}
	return o
}

func (p *memory) pass(datagram []byte) [][]byte {
	m, err := parseMessage(datagram)
	if err != nil {
		panic(err)
	}
	return p.follow(m, datagram)
}

func (p *memory) Send(datagram []byte) error {
	for _, there := range p.pass(slices.Clone(datagram)) {
		if answer := slices.Clone(there); p.server.answer(answer, time.Now()) {
			for _, back := range p.pass(answer) {
				p.back <- back
			}
		}
	}
	return nil
}

func (p *memory) Receive([]byte) ([]byte, error) {
	select {
	case datagram := <-p.back:
		return datagram, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *memory) Close() error {
	close(p.closed)
	return nil
}

func TestNothingIsLost(t *testing.T) {
	nothingLeft(t)
	r, err := Run(t.Context(), options(echo(t)))
	if err != nil {
		t.Fatal(err)
	}
	if r.Sent != 40 || r.Answered != 40 || !r.Certain || r.SendErrors != 0 || r.Socks != "" || len(r.RTTPercentiles) != 101 {
		t.Errorf("%+v", r)
	}
	for _, d := range []Direction{r.Up, r.Down} {
		if d.Sent != 40 || d.Arrived != 40 || d.Lost != 0 || d.Reordered != 0 || d.Duplicates != 0 || d.Variation.Min != 0 || d.Variation.Max < d.Variation.Median {
			t.Errorf("%+v", d)
		}
	}
	if r.RTT.Min <= 0 || r.RTT.Max < r.RTT.Median || r.LateMs.Min < 0 {
		t.Errorf("%+v, %+v", r.RTT, r.LateMs)
	}
}

// TestWhatTheNetworkDoes checks that the effects of a network on datagrams are counted
// separately for each direction.
func TestWhatTheNetworkDoes(t *testing.T) { synctest.Test(t, testWhatTheNetworkDoes) }

func testWhatTheNetworkDoes(t *testing.T) {
	var held []byte
	r, err := Run(t.Context(), inMemory(func(m message, datagram []byte) [][]byte {
		switch {
		case m.kind == kindProbe && (m.sequence == 3 || m.sequence == 4 || m.sequence == 39): // also the last one
			return nil
		case m.kind == kindProbe && m.sequence == 10:
			held = datagram
			return nil
		case m.kind == kindProbe && m.sequence == 12:
			return [][]byte{datagram, held, datagram}
		case m.kind == kindAnswer && (m.sequence == 0 || m.sequence == 38): // also the first one
			return nil
		case m.kind == kindAnswer && m.sequence == 20:
			held = datagram
			return nil
		case m.kind == kindAnswer && m.sequence == 22:
			return [][]byte{datagram, held, datagram}
		}
		return [][]byte{datagram}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if r.Sent != 40 || r.Answered != 35 || !r.Certain {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct{ got, want Direction }{
		{r.Up, Direction{Sent: 40, Arrived: 37, Lost: 3, LostPercent: 7.5, Duplicates: 1, Reordered: 1, ReorderedPercent: 2.703}},
		{r.Down, Direction{Sent: 37, Arrived: 35, Lost: 2, LostPercent: 5.405, Duplicates: 1, Reordered: 1, ReorderedPercent: 2.857}},
	} {
		c.want.JitterMs, c.want.Variation = c.got.JitterMs, c.got.Variation
		c.want.LeastMs, c.want.Held = c.got.LeastMs, c.got.Held
		if c.got != c.want {
			t.Errorf("\ngot  %+v\nwant %+v", c.got, c.want)
		}
	}
	// A datagram that was held back arrived two periods of 1 ms late, one after the next.
	if r.Up.Variation.Max != 2 || r.Down.Variation.Max != 2 || r.Up.Held.Max != 1 || r.Down.Held.Max != 1 || r.RTT.Min != 0 || r.RTT.Max != 2 {
		t.Errorf("%+v, %+v, held %+v, %+v, %+v", r.Up.Variation, r.Down.Variation, r.Up.Held, r.Down.Held, r.RTT)
	}
	if r.Up.JitterMs <= 0 || r.Down.JitterMs <= 0 || r.Down.Held.P5 != 0 {
		t.Errorf("%+v, %+v, held %+v", r.Up, r.Down, r.Down.Held)
	}
}

// TestWithoutTotals checks that, without the totals, the result has the values that the
// answers contain.
func TestWithoutTotals(t *testing.T) { synctest.Test(t, testWithoutTotals) }

func testWithoutTotals(t *testing.T) {
	began := time.Now()
	r, err := Run(t.Context(), inMemory(func(m message, datagram []byte) [][]byte {
		if m.kind == kindEnd || m.kind == kindProbe && m.sequence == 5 {
			return nil
		}
		return [][]byte{datagram}
	}))
	if err != nil || r.Certain || r.Up.Lost != 1 || r.Down.Lost != 0 || r.Answered != 39 {
		t.Errorf("%v, %+v", err, r)
	}
	sending := 39 * time.Millisecond
	waiting := defaultPatience.last + time.Duration(defaultPatience.asks)*defaultPatience.totals
	if after := time.Since(began); after != sending+waiting {
		t.Errorf("the run took %v", after)
	}
}

// TestForeignDatagrams checks that datagrams that are not answers to this run are not
// counted.
func TestForeignDatagrams(t *testing.T) {
	target := network(t, echo(t), func(m message, datagram []byte) [][]byte {
		if m.kind != kindAnswer {
			return [][]byte{datagram}
		}
		otherFlow, otherKind, short := slices.Clone(datagram), slices.Clone(datagram), datagram[:MinSize]
		otherFlow[8] ^= 1
		otherKind[4] = byte(kindProbe)
		noOrder := m
		noOrder.order = 0
		unordered := slices.Clone(datagram)
		noOrder.put(unordered)
		return [][]byte{[]byte("garbage"), otherFlow, otherKind, short, unordered, datagram}
	})
	r, err := Run(t.Context(), options(target))
	if err != nil || r.Answered != 40 || r.Down.Arrived != 40 || r.Down.Duplicates != 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestNobodyAnswers(t *testing.T) {
	nothingLeft(t)
	closed, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	o := options(netx.AddrPort(closed.LocalAddr()))
	o.patience = impatient
	r, err := Run(t.Context(), o)
	if !errors.Is(err, ErrNoAnswer) || r.Answered != 0 || r.Up.LostPercent != 100 || r.Sent+r.SendErrors != 40 {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestInterrupted checks that an interrupted run reports its measurements up to then.
// Datagrams in flight do not count as lost.
func TestInterrupted(t *testing.T) {
	nothingLeft(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	target := network(t, echo(t), func(m message, datagram []byte) [][]byte {
		if m.sequence == 5 {
			cancel()
		}
		return [][]byte{datagram}
	})
	o := options(target)
	o.Duration = 10 * time.Minute
	if r, err := Run(ctx, o); err != nil || r.Sent < 6 || r.Sent >= o.probes() || r.Answered != r.Sent {
		t.Errorf("%v, %+v", err, r)
	}
}

// socksServer serves UDP with a relay behind it: the parts of agent and proxy without a
// network between them.
func socksServer(t *testing.T, allow string) netip.AddrPort {
	t.Helper()
	allowed, err := config.ParseAllow([]string{allow})
	if err != nil {
		t.Fatal(err)
	}
	var open sync.Map // association number → *socks.Association
	relay := udprelay.New(udprelay.Options{Permits: allowed.Permits, Deliver: func(_ udprelay.Client, id uint32, source netip.AddrPort, _ byte, datagram []byte) {
		if association, ok := open.Load(id); ok {
			_ = association.(*socks.Association).Send(datagram, source)
		}
	}})
	t.Cleanup(relay.Close)
	server := &socks.Server{Handler: socks.Handler{Associate: func(_ context.Context, request socks.Request, a *socks.Association) {
		client, id := udprelay.Client{}, uint32(request.Source.Port())
		open.Store(id, a)
		defer open.Delete(id)
		defer relay.CloseAssociation(client, id)
		for {
			datagram, destination, err := a.Receive()
			if err != nil {
				return
			}
			_ = relay.Send(client, id, destination.AddrPort(), 0, datagram)
		}
	}}}
	listener, err := netx.Options{}.Listen(loopback)
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, func(ctx context.Context) { server.Serve(ctx, listener) })
	return netx.AddrPort(listener.Addr())
}

func TestThroughSOCKS(t *testing.T) {
	nothingLeft(t)
	o := options(echo(t))
	o.Socks = socksServer(t, "127.0.0.1/32:*")
	r, err := Run(t.Context(), o)
	if err != nil || r.Answered != 40 || !r.Certain || r.Up.Lost+r.Down.Lost != 0 || r.Socks != o.Socks.String() {
		t.Errorf("%v, %+v", err, r)
	}
	o.Socks, o.patience = socksServer(t, "127.0.0.2/32:*"), impatient
	if r, err := Run(t.Context(), o); !errors.Is(err, ErrNoAnswer) || r.Up.Arrived != 0 {
		t.Errorf("a destination that is not allowed: %v, %+v", err, r)
	}
}

func TestAssociationBreaksOff(t *testing.T) {
	nothingLeft(t)
	server := &socks.Server{Handler: socks.Handler{Associate: func(_ context.Context, _ socks.Request, a *socks.Association) {
		for range 3 {
			if _, _, err := a.Receive(); err != nil {
				t.Error(err)
			}
		}
	}}}
	listener, err := netx.Options{}.Listen(loopback)
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, func(ctx context.Context) { server.Serve(ctx, listener) })
	o := options(netip.MustParseAddrPort("127.0.0.1:9"))
	o.Socks, o.Duration = netx.AddrPort(listener.Addr()), 10*time.Minute
	if r, err := Run(t.Context(), o); !errors.Is(err, errBroken) || r.Sent+r.SendErrors < 3 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestBadOptions(t *testing.T) {
	good := options(netip.MustParseAddrPort("127.0.0.1:9"))
	for _, c := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Size = MinSize - 1 }, "the size must be from 56 to 60000 bytes"},
		{func(o *Options) { o.Size = MaxSize + 1 }, "the size must be"},
		{func(o *Options) { o.Period = 0 }, "the period must be positive"},
		{func(o *Options) { o.Period = time.Hour }, "not longer than the whole run"},
		{func(o *Options) { o.Duration = 100 * time.Hour }, "more than 1048576 probes"},
		{func(o *Options) { o.Gap = -1 }, "a gap cannot be negative"},
	} {
		o := good
		c.change(&o)
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
