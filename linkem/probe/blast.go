package probe

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"
)

// refusedError is a server's refusal.
type refusedError struct{ reason uint64 }

func (e *refusedError) Error() string {
	reason, known := refusals[e.reason]
	if !known {
		reason = fmt.Sprintf("reason %d", e.reason)
	}
	return "the server refuses: " + reason
}

// send sends a message of the minimum size. It ignores errors, because they show as a missing answer.
func (c *client) send(m message) {
	var packet [headBytes]byte
	m.put(packet[:])
	_, _ = c.socket.Write(packet[:])
}

// await returns the next wanted message, or os.ErrDeadlineExceeded. A refusal is an error.
func (c *client) await(until time.Time, wanted func(received) bool) (received, error) {
	if err := c.socket.SetReadDeadline(until); err != nil {
		return received{}, err
	}
	for {
		in, err := c.socket.receive()
		if errors.Is(err, syscall.ECONNREFUSED) && time.Now().Before(until) {
			continue // ICMP error of an earlier message; the deadline still applies
		}
		if err != nil {
			return received{}, err
		}
		if !wanted(in) && in.kind != kindRefused {
			continue
		}
		if in.kind == kindRefused {
			return received{}, &refusedError{in.first}
		}
		return in, nil
	}
}

// down measures the arrival rate of a blast from the server, in bit/s. It returns false if too little arrived.
func (c *client) down() (float64, bool, error) {
	o := c.options
	rate := o.DownKbps * 1000 * blastFactor
	duration := time.Duration(o.Seconds * float64(time.Second))
	start := message{
		kind: kindDownStart, token: c.token, sequence: c.run, first: uint64(rate),
		second: uint64(duration.Milliseconds())<<32 | uint64(blastSize(rate, o.Seconds)),
	}
	var samples []sample
	deadline := time.Now().Add(o.Timeout + 2*duration + afterBlast)
	for time.Now().Before(deadline) {
		until := deadline
		if len(samples) == 0 { // the request may be lost; the server handles duplicates
			c.send(start)
			until = earlier(deadline, time.Now().Add(max(askPause, 2*c.rtt)))
		} else { // all end messages may be lost
			until = earlier(deadline, time.Now().Add(max(time.Second, 2*c.rtt)))
		}
		in, err := c.await(until, func(in received) bool {
			return in.sequence == c.run && (in.kind == kindDownData || in.kind == kindDownEnd)
		})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if len(samples) == 0 {
				continue
			}
		case err != nil:
			return 0, false, err
		case in.kind == kindDownData:
			if len(samples) < mostSamples {
				samples = append(samples, sample{in.at, in.bytes})
			}
			continue
		}
		break
	}
	bits, ok := deliveryRate(samples)
	return bits, ok, nil
}

// up measures the rate at which a blast arrives at the server, in bit/s. It returns false if too little arrived.
func (c *client) up() (float64, bool, error) {
	o := c.options
	rate := o.UpKbps * 1000 * blastFactor
	duration := time.Duration(o.Seconds * float64(time.Second))
	data := padded(message{kind: kindUpData, token: c.token, sequence: c.run}, blastSize(rate, o.Seconds), c.overhead)
	_, err := blast(rate, len(data)+c.overhead, duration, func() error {
		_, err := c.socket.Write(data)
		if errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		return err
	})
	if err != nil {
		return 0, false, err
	}
	// The request follows the data through the same queue and may be dropped there.
	for deadline := time.Now().Add(duration + afterBlast); time.Now().Before(deadline); {
		c.send(message{kind: kindUpAsk, token: c.token, sequence: c.run})
		in, err := c.await(earlier(deadline, time.Now().Add(max(askPause, 2*c.rtt))), func(in received) bool {
			return in.kind == kindUpReport && in.sequence == c.run
		})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return 0, false, err
		}
		return float64(in.first), in.first > 0 && in.first < math.MaxInt64, nil
	}
	return 0, false, errors.New("the server did not report the received packets")
}
