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

// Options say what to measure.
type Options struct {
	Device      string        // interface to measure from; empty: by the routes
	Server      string        // address and port of the probe server
	DownKbps    float64       // expected rate; 0: do not measure it
	UpKbps      float64       // expected rate; 0: do not measure it
	Pings       int           // echoes for the round-trip time
	LossPackets int           // further echoes, for the loss alone
	Seconds     float64       // of each blast
	Timeout     time.Duration // for the server's first answer
}

// Result is what was measured. A rate that was not measured is null.
type Result struct {
	Device      string   `json:"device"`
	RTT         RTT      `json:"rtt_ms"`
	DownKbps    *float64 `json:"down_kbps"`
	UpKbps      *float64 `json:"up_kbps"`
	LossPercent float64  `json:"loss_percent"` // of all echoes, there and back
	LossSent    int      `json:"loss_sent"`    // echoes that loss_percent is a share of
}

const (
	pingPause    = 30 * time.Millisecond
	helloPause   = 250 * time.Millisecond
	askPause     = 300 * time.Millisecond
	shortestTail = time.Second            // waited for the last echoes
	lossShare    = 0.2                    // of the slower rate, for the loss packets
	longestLoss  = time.Second            // for all loss packets
	fastestLoss  = 500 * time.Microsecond // between two of them
	longestDrain = 3 * time.Second        // for the queue to drain after a blast
	drainSlack   = 3.0                    // ms above the RTT without load that count as drained,
	drainFactor  = 1.1                    // or this many times the RTT
	mostBlasts   = 3                      // of one direction, until enough of one arrives
	afterBlast   = 3 * time.Second        // for what is still in the queue
	leastKbps    = 1
	mostKbps     = mostBlastBits / 1000 / blastFactor
)

// check refuses options that cannot be met.
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
	case o.LossPackets < 0 || o.LossPackets > 10_000:
		return errors.New("the number of loss packets must be from 0 to 10000")
	case !within(o.Seconds, 0.05, mostBlastTime.Seconds()):
		return fmt.Errorf("the seconds must be from 0.05 to %.0f", mostBlastTime.Seconds())
	case o.Timeout <= 0:
		return errors.New("the timeout must be positive")
	case max(o.DownKbps, o.UpKbps)*blastFactor*o.Seconds*125 > mostSessionBytes/2:
		return fmt.Errorf("rate and seconds would take more than %d MB: ask for fewer seconds", mostSessionBytes/2>>20)
	}
	return nil
}

// Measure measures a link: first round-trip time and loss, then the rates, down and up. It takes a bounded time.
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

// failed names device and server.
func (o Options) failed(err error) error {
	if o.Device == "" {
		return fmt.Errorf("probe of %s: %w", o.Server, err)
	}
	return fmt.Errorf("probe of %s through %s: %w", o.Server, o.Device, err)
}

// client is one session with a server. One goroutine uses it.
type client struct {
	options  Options
	socket   *socket
	overhead int // IP and UDP header bytes
	token    token
	rtt      time.Duration // of the handshake, then the median without load
	sequence uint32        // of echoes
	run      uint32        // of blasts
}

func (c *client) measure() (Result, error) {
	o := c.options
	result := Result{Device: o.Device}
	if err := c.handshake(); err != nil {
		return result, err
	}
	times, err := c.echo(o.Pings, pingPause)
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
		if result.DownKbps, err = c.rate("down", c.down); err != nil {
			return result, err
		}
	}
	if o.UpKbps > 0 {
		if result.UpKbps, err = c.rate("up", c.up); err != nil {
			return result, err
		}
	}
	return result, nil
}

// lossTrain gives the number and the distance of the loss packets: they use only a small share of the slower rate.
func (o Options) lossTrain() (int, time.Duration) {
	pause := fastestLoss
	for _, kbps := range []float64{o.DownKbps, o.UpKbps} {
		if kbps > 0 {
			pause = max(pause, time.Duration(smallestBlast*8e6/(kbps*lossShare)))
		}
	}
	return min(o.LossPackets, int(longestLoss/pause)), pause
}

// handshake gets the token of a session.
func (c *client) handshake() error {
	nonce := newToken()
	first, second := nonce.halves()
	deadline := time.Now().Add(c.options.Timeout)
	var asked []time.Time // by sequence number: the answer may be to an earlier question
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
		time.Sleep(time.Until(earlier(deadline, sent.Add(helloPause)))) // refused at once: nobody listens yet
	}
	return fmt.Errorf("no answer within %v; is \"linkem probe-server\" running there, and is there a route?", c.options.Timeout)
}

// echo sends n echoes and gives the round-trip times of those that came back, in milliseconds. The server's own time is
// not part of them.
func (c *client) echo(n int, pause time.Duration) ([]float64, error) {
	base := c.sequence + 1
	c.sequence += uint32(n)
	sentAt := make([]int64, n) // ns since the epoch; 0: answered, or not sent yet
	var times []float64
	next, sent := time.Now(), 0
	tail := max(shortestTail, 3*c.rtt)
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
			if sent == n && !time.Now().Before(until) {
				break
			}
			continue
		}
		if err != nil {
			return times, err
		}
		index := int(in.sequence - base)
		if index < 0 || index >= sent || sentAt[index] == 0 {
			continue // of an earlier series, or twice
		}
		times = append(times, float64(max(in.at-sentAt[index]-int64(in.first), 0))/1e6)
		sentAt[index] = 0
	}
	return times, nil
}

// rate measures one direction and waits until the queue has drained. Of a blast in which a machine stood still too little
// may arrive to tell: that is measured again.
func (c *client) rate(direction string, measure func() (float64, bool, error)) (*float64, error) {
	for range mostBlasts {
		c.run++
		bits, ok, err := measure()
		if err == nil {
			err = c.drain()
		}
		if err != nil {
			return nil, fmt.Errorf("rate %s: %w", direction, err)
		}
		if ok {
			kbps := rounded(bits / 1000)
			return &kbps, nil
		}
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

// within is false for NaN.
func within(v, low, high float64) bool { return v >= low && v <= high }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
