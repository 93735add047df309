package udpjitter

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"mplab/internal/netx"
)

// ErrNoAnswer reports that no probe was answered.
var ErrNoAnswer = errors.New("no probe was answered; is \"mpflex udp-echo\" running there, and is there a route?")

// errBroken reports that the SOCKS server ended the association.
var errBroken = errors.New("the SOCKS server ended the association")

// patience is how long a client waits after sending.
type patience struct {
	last   time.Duration // for the last answers
	totals time.Duration // for the server's totals, per request
	asks   int           // requests for the totals
}

var defaultPatience = patience{last: 2 * time.Second, totals: 200 * time.Millisecond, asks: 10}

// Options are the settings of a measurement.
type Options struct {
	Target   netip.AddrPort // echo server
	Socks    netip.AddrPort // SOCKS5 server; zero: none
	Size     int            // UDP payload in bytes, MinSize to MaxSize
	Period   time.Duration  // between two probes
	Duration time.Duration  // of sending
	Gap      time.Duration  // minimum silence that counts as a gap; 0: ten periods

	patience *patience // nil: defaultPatience
	path     path      // nil: a socket, or an association with the SOCKS server
}

// Check returns an error for invalid options.
func (o Options) Check() error {
	switch {
	case o.Size < MinSize || o.Size > MaxSize:
		return fmt.Errorf("the size must be from %d to %d bytes", MinSize, MaxSize)
	case o.Period <= 0 || o.Duration < o.Period:
		return errors.New("the period must be positive and not longer than the whole run")
	case o.Duration/o.Period > maxProbes:
		return fmt.Errorf("%v with a probe every %v are more than %d probes", o.Duration, o.Period, maxProbes)
	case o.Gap < 0:
		return errors.New("a gap cannot be negative")
	}
	return nil
}

func (o Options) probes() int { return int(o.Duration / o.Period) }

// client is the state of one run.
type client struct {
	options Options
	path    path
	clock   clock
	flow    uint64

	sent, failed int
	late         []int64 // delay of each probe after its planned time, ns

	collector *collector
	totals    chan message  // the server's totals
	broken    chan struct{} // closed when no more datagrams can arrive
}

// Run measures. When ctx ends, it stops sending and waits for the outstanding answers,
// for at most 4 s, so that they do not count as lost. It fails if the path cannot be
// opened, if no probe was answered (ErrNoAnswer), or if the path broke. In the last two
// cases the result is valid.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.Check(); err != nil {
		return Result{}, err
	}
	if o.Gap == 0 {
		o.Gap = 10 * o.Period
	}
	if o.patience == nil {
		o.patience = &defaultPatience
	}
	p, err := openPath(ctx, o)
	if err != nil {
		return Result{}, err
	}
	c := &client{
		options: o, path: p, clock: newClock(), flow: newFlow(),
		late:      make([]int64, 0, o.probes()),
		collector: newCollector(o.Gap), totals: make(chan message, 1), broken: make(chan struct{}),
	}
	go c.receive()
	began := time.Now()
	c.collector.begin(began)
	c.send(ctx, began)
	ended := time.Now()
	c.collector.expect(c.sent - c.failed)
	c.await()
	totals, certain := c.askTotals()
	broke := c.isBroken()
	_ = p.Close()
	<-c.broken
	result := c.result(totals, certain, ended)
	switch {
	case broke:
		return result, errBroken
	case result.Answered == 0:
		return result, ErrNoAnswer
	}
	return result, nil
}

func newFlow() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// send sends each probe at its planned time.
func (c *client) send(ctx context.Context, began time.Time) {
	datagram := make([]byte, c.options.Size)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range c.options.probes() {
		due := began.Add(time.Duration(i) * c.options.Period)
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return
		case <-c.broken:
			return
		case <-timer.C:
		}
		now := time.Now()
		c.late = append(c.late, int64(now.Sub(due)))
		message{kind: kindProbe, flow: c.flow, sequence: uint32(i), sent: c.clock.at(now)}.put(datagram)
		if err := c.path.Send(datagram); err != nil {
			c.failed++
		}
		c.sent++
	}
}

// receive collects answers until the path is closed.
func (c *client) receive() {
	defer close(c.broken)
	buffer := make([]byte, netx.MaxDatagram)
	for {
		datagram, err := c.path.Receive(buffer)
		now := time.Now()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error, or not for us
		}
		m, err := parseMessage(datagram)
		if err != nil || m.flow != c.flow {
			continue
		}
		switch {
		case m.kind == kindTotals:
			select {
			case c.totals <- m:
			default: // one is enough
			}
		case m.kind == kindAnswer && len(datagram) == c.options.Size:
			c.collector.take(m, now, c.clock.at(now))
		}
	}
}

// await waits for the last answers.
func (c *client) await() {
	timer := time.NewTimer(c.options.patience.last)
	defer timer.Stop()
	select {
	case <-c.collector.complete:
	case <-c.broken:
	case <-timer.C:
	}
}

// askTotals requests the server's totals. It returns false without an answer.
func (c *client) askTotals() (message, bool) {
	datagram := make([]byte, MinSize)
	message{kind: kindEnd, flow: c.flow}.put(datagram)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for range c.options.patience.asks {
		_ = c.path.Send(datagram) // a lost request is repeated
		timer.Reset(c.options.patience.totals)
		select {
		case m := <-c.totals:
			return m, true
		case <-c.broken:
			return message{}, false
		case <-timer.C:
		}
	}
	return message{}, false
}

func (c *client) isBroken() bool {
	select {
	case <-c.broken:
		return true
	default:
		return false
	}
}
