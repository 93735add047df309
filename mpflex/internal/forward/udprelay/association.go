package udprelay

import (
	"errors"
	"math"
	"net/netip"
	"os"
	"sync"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/connlog"
)

// association is one socket and its peers.
type association struct {
	relay    *Relay
	key      key
	opened   time.Time
	socket   *netx.Datagrams
	activity netx.Activity
	status   connlog.Status // guarded by the relay's lock

	mu           sync.Mutex // guards the fields below
	up, down     traffic
	destinations map[netip.AddrPort]*peer
}

// peer is a destination whose answers are accepted.
type peer struct {
	netx.Activity
	label byte // of the last datagram to it
}

// traffic counts datagrams and their bytes.
type traffic struct{ datagrams, bytes uint64 }

func (t *traffic) add(datagram []byte) {
	t.datagrams++
	t.bytes += uint64(len(datagram))
}

// send sends a datagram to a permitted destination.
func (a *association) send(to netip.AddrPort, label byte, datagram []byte) error {
	err := a.trySend(to, label, datagram)
	switch {
	case errors.Is(err, netx.ErrWouldWait):
		a.relay.Counters.Dropped.Add(1)
	case err != nil:
		a.relay.Counters.Failed.Add(1)
		a.relay.note(a.key, to, err)
	}
	return err
}

// trySend sends and counts under one lock. So the log record of an association that
// ends at the same time counts every datagram sent.
func (a *association) trySend(to netip.AddrPort, label byte, datagram []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expect(to, label)
	if err := a.socket.Send(datagram, to); err != nil {
		return err
	}
	a.up.add(datagram)
	a.relay.Counters.Up.Add(1)
	a.relay.Counters.UpBytes.Add(uint64(len(datagram)))
	return nil
}

// expect accepts answers of a destination from now on.
func (a *association) expect(from netip.AddrPort, label byte) {
	seen := a.destinations[from]
	if seen == nil {
		if len(a.destinations) >= a.relay.options.Limits.Destinations {
			a.forget()
		}
		seen = &peer{}
		a.destinations[from] = seen
	}
	seen.label = label
	seen.Touch()
}

// forget removes the destination that was silent for the longest time.
func (a *association) forget() {
	var oldest netip.AddrPort
	least := time.Duration(math.MaxInt64)
	for address, seen := range a.destinations {
		if last := seen.Last(); last < least {
			oldest, least = address, last
		}
	}
	delete(a.destinations, oldest)
}

// answer reports whether a datagram from this source is an answer. It counts the answer
// and returns its label.
func (a *association) answer(source netip.AddrPort, datagram []byte) (label byte, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.destinations[source]
	if seen == nil || seen.Left(a.relay.options.Limits.Idle) <= 0 {
		return 0, false
	}
	seen.Touch()
	a.activity.Touch()
	a.down.add(datagram)
	return seen.label, true
}

// run delivers answers until the association ends.
func (a *association) run() {
	defer a.log()
	for {
		err := a.socket.Receive(a.deliver)
		switch {
		case err == nil:
			continue
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return
		}
		left := a.relay.expire(a)
		if left <= 0 {
			return
		}
		_ = a.socket.SetReadDeadline(time.Now().Add(left)) // fails if the socket is closed; then the next read fails, too
	}
}

func (a *association) deliver(datagram []byte, source netip.AddrPort) {
	counters := &a.relay.Counters
	label, ok := a.answer(source, datagram)
	if !ok {
		counters.Unsolicited.Add(1)
		return
	}
	counters.Down.Add(1)
	counters.DownBytes.Add(uint64(len(datagram)))
	a.relay.options.Deliver(a.key.client, a.key.id, source, label, datagram)
}

// unreachable counts and logs an ICMP error.
func (a *association) unreachable(err netx.ICMPError) {
	a.relay.Counters.Unreachable.Add(1)
	a.relay.note(a.key, err.Destination, err.Err)
}

// close ends the association, which must have been removed from the table.
func (a *association) close(status connlog.Status) {
	a.status = status
	_ = a.socket.Close()
}
