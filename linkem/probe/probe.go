package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"mplab/linkem/internal/exit"
)

// Options of a measurement.
type Options struct {
	Device      string        // interface to measure from; empty: by routing
	Server      string        // address and port of the probe server
	DownKbps    float64       // expected rate; 0: not measured
	UpKbps      float64       // expected rate; 0: not measured
	Pings       int           // number of echoes for the round-trip time
	PingPause   time.Duration // between two of them, longer on a slow link; 0: 30 ms
	LossPackets int           // number of further echoes, only for the loss
	Seconds     float64       // duration of each blast
	Timeout     time.Duration // of the server's first answer
}

// Result holds the measured values. A rate that was not measured is null.
type Result struct {
	Device      string   `json:"device"`
	RTT         RTT      `json:"rtt_ms"`
	DownKbps    *float64 `json:"down_kbps"`
	UpKbps      *float64 `json:"up_kbps"`
	LossPercent float64  `json:"loss_percent"` // of all echoes, for both directions together
	LossSent    int      `json:"loss_sent"`    // number of echoes
}

const (
	pingPause    = 30 * time.Millisecond
	longestPause = time.Second // maximum PingPause
	helloPause   = 250 * time.Millisecond
	askPause     = 300 * time.Millisecond
	shortestTail = 400 * time.Millisecond // minimum wait for the last echoes
	lastLook     = 50 * time.Millisecond  // further wait after a tail, and after each answer in it
	echoShare    = 0.2                    // of the slower rate, for echoes: they must not fill the queue
	longestLoss  = time.Second            // duration limit of all loss packets
	fastestLoss  = 500 * time.Microsecond // minimum interval between two of them
	longestDrain = 3 * time.Second        // maximum wait until the queue has drained after a blast
	drainSlack   = 3.0                    // ms above the unloaded RTT that count as drained,
	drainFactor  = 1.1                    // or this many times the RTT
	mostBlasts   = 3                      // attempts per direction until enough of a blast arrives
	afterBlast   = 3 * time.Second        // for data still in the queue
	leastKbps    = 1
	mostKbps     = mostBlastBits / 1000 / blastFactor
)

// check returns an error for invalid options.
func (o Options) check() error {
	switch {
	case o.Server == "":
		return errors.New("the server's address is missing")
	case !within(o.DownKbps, 0, mostKbps) || !within(o.UpKbps, 0, mostKbps):
		return fmt.Errorf("a rate must be from 0 to %.0f kbit/s", mostKbps)
	case o.DownKbps > 0 && o.DownKbps < leastKbps || o.UpKbps > 0 && o.UpKbps < leastKbps:
		return fmt.Errorf("a rate must be 0 (not measured) or at least %d kbit/s", leastKbps)
	case o.Pings < 1 || o.Pings > 10_000:
		return errors.New("the number of pings must be from 1 to 10000")
	case o.PingPause < 0 || o.PingPause > longestPause:
		return fmt.Errorf("the pause between pings must be from 0 to %v", longestPause)
	case o.LossPackets < 0 || o.LossPackets > 10_000:
		return errors.New("the number of loss packets must be from 0 to 10000")
	case !within(o.Seconds, 0.05, mostBlastTime.Seconds()):
		return fmt.Errorf("the seconds must be from 0.05 to %.0f", mostBlastTime.Seconds())
	case o.Timeout <= 0:
		return errors.New("the timeout must be positive")
	case max(o.DownKbps, o.UpKbps)*blastFactor*o.Seconds*125 > mostSessionBytes/2:
		return fmt.Errorf("rate and seconds need more than %d MB: give fewer seconds", mostSessionBytes/2>>20)
	}
	return nil
}

// Measure measures a link: first round-trip time and loss, then the rates, down and up. Its duration is bounded.
func Measure(ctx context.Context, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, exit.With(exit.Config, fmt.Errorf("probe: %w", err))
	}
	socket, err := connect(o.Device, o.Server)
	if err != nil {
		return Result{}, o.failed(err)
	}
	defer func() { _ = socket.Close() }()
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	client := &client{options: o, socket: socket, overhead: overheadTo(socket.RemoteAddr().(*net.UDPAddr).AddrPort())}
	result, err := client.measure()
	if ctx.Err() != nil {
		return result, o.failed(errors.New("interrupted"))
	}
	if err != nil {
		return result, o.failed(err)
	}
	return result, nil
}

// failed adds device and server to an error.
func (o Options) failed(err error) error {
	if o.Device == "" {
		return fmt.Errorf("probe of %s: %w", o.Server, err)
	}
	return fmt.Errorf("probe of %s through %s: %w", o.Server, o.Device, err)
}

// client is a session with a server. It is for one goroutine.
type client struct {
	options  Options
	socket   *socket
	overhead int // IP and UDP header bytes
	token    token
	rtt      time.Duration // of the handshake, later the unloaded median
	sequence uint32        // of echoes
	run      uint32        // of blasts
}

func (c *client) measure() (Result, error) {
	o := c.options
	result := Result{Device: o.Device}
	if err := c.handshake(); err != nil {
		return result, err
	}
	times, err := c.echo(o.Pings, o.pingPause())
	if err != nil {
		return result, err
	}
	if len(times) == 0 {
		return result, fmt.Errorf("none of %d pings was answered", o.Pings)
	}
	result.RTT = newRTT(times, o.Pings)
	c.rtt = time.Duration(result.RTT.Median * float64(time.Millisecond))
	more, pause := o.lossTrain()
	answered, err := c.echo(more, pause)
	if err != nil {
		return result, err
	}
	result.LossSent = o.Pings + more
	result.LossPercent = rounded(100 * (1 - float64(len(times)+len(answered))/float64(result.LossSent)))
	if o.DownKbps > 0 {
		if result.DownKbps, err = c.rate("down", o.DownKbps, c.down); err != nil {
			return result, err
		}
	}
	if o.UpKbps > 0 {
		if result.UpKbps, err = c.rate("up", o.UpKbps, c.up); err != nil {
			return result, err
		}
	}
	return result, nil
}

// pingPause returns the interval of the echoes for the round-trip time.
func (o Options) pingPause() time.Duration {
	if o.PingPause == 0 {
		return pingPause
	}
	return o.slowed(o.PingPause)
}

// lossTrain returns the number and interval of the loss packets.
func (o Options) lossTrain() (int, time.Duration) {
	pause := o.slowed(fastestLoss)
	return min(o.LossPackets, int(longestLoss/pause)), pause
}

// slowed returns the pause, or a longer one with which echoes use only echoShare of the slower rate.
func (o Options) slowed(pause time.Duration) time.Duration {
	for _, kbps := range []float64{o.DownKbps, o.UpKbps} {
		if kbps > 0 {
			pause = max(pause, time.Duration(smallestBlast*8e6/(kbps*echoShare)))
		}
	}
	return pause
}

// handshake obtains a session token.
func (c *client) handshake() error {
	nonce := newToken()
	first, second := nonce.halves()
	deadline := time.Now().Add(c.options.Timeout)
	var asked []time.Time // by sequence number: an answer can be to an earlier hello
	for time.Now().Before(deadline) {
		sent := time.Now()
		c.send(message{kind: kindHello, token: nonce, sequence: uint32(len(asked))})
		asked = append(asked, sent)
		in, err := c.await(earlier(deadline, sent.Add(helloPause)), func(in received) bool {
			return in.kind == kindWelcome && in.first == first && in.second == second || in.kind == kindRefused && in.token == nonce
		})
		var refused *refusedError
		if errors.As(err, &refused) {
			return err
		}
		if err == nil {
			if int(in.sequence) < len(asked) {
				sent = asked[in.sequence]
			}
			c.token, c.rtt = in.token, time.Since(sent)
			return nil
		}
		time.Sleep(time.Until(earlier(deadline, sent.Add(helloPause)))) // refused at once: no server is listening yet
	}
	return fmt.Errorf("no answer within %v; is \"linkem probe-server\" running there, and is there a route?", c.options.Timeout)
}

// echo sends n echoes and returns the round-trip times of the answers in ms, without the server's processing time.
func (c *client) echo(n int, pause time.Duration) ([]float64, error) {
	base := c.sequence + 1
	c.sequence += uint32(n)
	sentAt := make([]int64, n) // ns since the epoch; 0: answered or not sent
	var times []float64
	next, sent := time.Now(), 0
	tail, looked := max(shortestTail, 3*c.rtt), false
	for sent < n || len(times) < n {
		if sent < n && !time.Now().Before(next) {
			sentAt[sent] = time.Now().UnixNano()
			c.send(message{kind: kindEcho, token: c.token, sequence: base + uint32(sent)})
			sent++
			next = next.Add(pause)
		}
		until := next
		if sent == n {
			until = next.Add(tail)
		}
		in, err := c.await(until, func(in received) bool { return in.kind == kindEchoed })
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if sent < n || time.Now().Before(until) {
				continue
			}
			if looked {
				break
			}
			// This process may have stalled: read the answers that have arrived in the meantime.
			looked, next = true, time.Now().Add(lastLook-tail)
			continue
		}
		if err != nil {
			return times, err
		}
		index := int(in.sequence - base)
		if index < 0 || index >= sent || sentAt[index] == 0 {
			continue // of an earlier series, or a duplicate
		}
		times = append(times, float64(max(in.at-sentAt[index]-int64(in.first), 0))/1e6)
		sentAt[index], looked = 0, false
	}
	return times, nil
}

// rate measures one direction and waits until the queue has drained. If a machine stalled during a blast, too few
// packets may arrive, or all of them at once, faster than they were sent; then the blast is repeated.
func (c *client) rate(direction string, expected float64, measure func() (float64, bool, error)) (*float64, error) {
	var burst *float64
	for range mostBlasts {
		c.run++
		bits, ok, err := measure()
		if err == nil {
			err = c.drain()
		}
		if err != nil {
			return nil, fmt.Errorf("rate %s: %w", direction, err)
		}
		if !ok {
			continue
		}
		kbps := rounded(bits / 1000)
		if kbps <= expected*burstFactor {
			return &kbps, nil
		}
		burst = &kbps
	}
	if burst != nil {
		return burst, nil // three times: the link lets bursts pass
	}
	return nil, fmt.Errorf("rate %s: too few packets arrived, %d times", direction, mostBlasts)
}

// drain waits until a round trip is about as short as without load, at most longestDrain.
func (c *client) drain() error {
	base := float64(c.rtt) / 1e6
	for deadline := time.Now().Add(longestDrain); time.Now().Before(deadline); {
		times, err := c.echo(1, pingPause)
		if err != nil {
			return err
		}
		if len(times) == 1 && slices.Min(times) <= max(base+drainSlack, base*drainFactor) {
			return nil
		}
	}
	return nil
}

// within reports whether v is in [low, high]; false for NaN.
func within(v, low, high float64) bool { return v >= low && v <= high }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
