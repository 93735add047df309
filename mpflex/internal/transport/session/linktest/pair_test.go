package linktest

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/rig/rigtest"
	"mplab/internal/netx"
	"mplab/mpflex/internal/transport/session"
)

// congestion is the congestion control of both ends.
const congestion = "cubic"

func TestMain(m *testing.M) { rigtest.Main(m) }

// start makes links with the conditions of a profile.
func start(t *testing.T, profile string) *rig.Rig {
	t.Helper()
	rigtest.Need(t)
	found, err := links.Find(profile)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rig.New(true, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Log(err) // on a busy machine the emulator is late; no test here checks times
		}
	})
	if err := r.Apply(found); err != nil {
		t.Fatal(err)
	}
	return r
}

// pair holds both ends of a session over both links.
type pair struct {
	agent, proxy *session.Session
	paths        []*net.TCPConn // the proxy's ends: WiFi, LTE
}

// attach makes a session with a path on each link.
func attach(t *testing.T, r *rig.Rig, c session.Config) *pair {
	t.Helper()
	k := &pair{}
	var err error
	if k.agent, err = session.New(session.Agent, c); err != nil {
		t.Fatal(err)
	}
	if k.proxy, err = session.New(session.Proxy, c); err != nil {
		t.Fatal(err)
	}
	var listener *net.TCPListener
	r.Proxy.Do(func() {
		listener, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(rig.Proxy, 0)))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for i, device := range []string{rig.WiFi, rig.LTE} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		near, err := netx.Options{Device: device, Congestion: congestion}.Dial(ctx, netx.AddrPort(listener.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		far, err := listener.AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		if err := netx.SetCongestion(far, congestion); err != nil {
			t.Fatal(err)
		}
		for s, conn := range map[*session.Session]*net.TCPConn{k.agent: near, k.proxy: far} {
			if _, err := s.Attach(session.Link{Conn: conn, TCP: conn, ID: uint8(i), Incarnation: 1, Name: device}); err != nil {
				t.Fatal(err)
			}
		}
		k.paths = append(k.paths, far)
	}
	t.Cleanup(func() {
		_ = k.agent.Close()
		_ = k.proxy.Close()
	})
	return k
}
