package udpjitter

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"time"

	"mplab/internal/netx"
)

// maxFlows bounds the flows that an echo server remembers. A further one replaces the
// one that was silent for the longest time.
const maxFlows = 256

// Echo answers the probes to one UDP socket.
type Echo struct {
	socket *net.UDPConn
	clock  clock
	flows  map[uint64]*flow
}

// flow is the server's state of one client's run.
type flow struct {
	receiver
	activity netx.Activity
}

// ListenEcho opens the socket of an echo server.
func ListenEcho(ctx context.Context, address netip.AddrPort) (*Echo, error) {
	socket, err := netx.Options{}.ListenUDP(ctx, address)
	if err != nil {
		return nil, err
	}
	e := newEcho()
	e.socket = socket
	return e, nil
}

func newEcho() *Echo { return &Echo{clock: newClock(), flows: make(map[uint64]*flow)} }

// Addr returns the address of the socket.
func (e *Echo) Addr() netip.AddrPort { return netx.AddrPort(e.socket.LocalAddr()) }

// Run answers until ctx ends.
func (e *Echo) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = e.socket.Close() })
	defer stop()
	buffer := make([]byte, netx.MaxDatagram)
	for ctx.Err() == nil {
		n, client, err := e.socket.ReadFromUDPAddrPort(buffer)
		now := time.Now()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				time.Sleep(time.Millisecond)
			}
			continue
		}
		if e.answer(buffer[:n], now) {
			_, _ = e.socket.WriteToUDPAddrPort(buffer[:n], client) // a lost answer is part of the client's measurement
		}
	}
}

// answer turns a message into its answer. It returns false if there must be no answer.
func (e *Echo) answer(datagram []byte, now time.Time) bool {
	m, err := parseMessage(datagram)
	if err != nil || m.kind != kindProbe && m.kind != kindEnd || m.sequence >= maxProbes {
		return false
	}
	f := e.flow(m.flow)
	f.activity.Touch()
	m.arrived = e.clock.at(now)
	switch {
	case m.kind == kindEnd:
		m.kind = kindTotals
	case !f.take(m.sequence, m.sent, m.arrived):
		return false
	default:
		m.kind = kindAnswer
	}
	m.order, m.reordered, m.duplicates, m.jitter = f.arrived, f.reordered, f.duplicates, int64(f.jitterNs)
	m.put(datagram)
	return true
}

// flow returns the state of a flow. If the flow is new, it makes the state.
func (e *Echo) flow(id uint64) *flow {
	if f := e.flows[id]; f != nil {
		return f
	}
	if len(e.flows) >= maxFlows {
		var oldest uint64
		least := time.Duration(math.MaxInt64)
		for id, f := range e.flows {
			if last := f.activity.Last(); last < least {
				oldest, least = id, last
			}
		}
		delete(e.flows, oldest)
	}
	f := &flow{}
	e.flows[id] = f
	return f
}
