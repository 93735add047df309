package rig_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/origin"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/rig/rigtest"
	"mplab/bench/mpflex/role"
	"mplab/internal/netx"
)

func TestMain(m *testing.M) { rigtest.Main(m) }

var server = netip.AddrPortFrom(rig.Origin, 9000)

// start creates a rig with the links of a profile, and an origin.
func start(t *testing.T, profile links.Profile) *rig.Rig {
	t.Helper()
	rigtest.Need(t)
	r, err := rig.New(profile.Shaped, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.Apply(profile); err != nil {
		t.Fatal(err)
	}
	p, err := r.Origin.Start(role.Origin, role.Encode([]origin.Listener{{Address: server, Congestion: "reno"}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func find(t *testing.T, name string) links.Profile {
	t.Helper()
	p, err := links.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// get downloads over one link and leaves the connection open.
func get(t *testing.T, device string, size uint64, patience time.Duration) (*net.TCPConn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := netx.Options{Device: device, Congestion: "reno"}.Dial(ctx, server)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, origin.Get(conn, size, 1, nil)
}

func TestLinksAreWhatTheirProfileSays(t *testing.T) {
	profile := find(t, "r2")
	r := start(t, profile)
	checked, err := r.Verify(t.Context())
	if errors.Is(err, rig.ErrLinks) {
		t.Skipf("the machine is too busy to emulate links: %v", err)
	}
	if err != nil || len(checked) != 4 {
		t.Errorf("%+v, %v", checked, err)
	}

	before, err := r.Traffic()
	if err != nil {
		t.Fatal(err)
	}
	const size = 200_000
	conn, err := get(t, rig.LTE, size, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	after, err := r.Traffic()
	if err != nil {
		t.Fatal(err)
	}
	if got := after[rig.LTE].Sub(before[rig.LTE]).DownBytes; got < size || got > size*11/10 {
		t.Errorf("%d bytes came down for a file of %d", got, size)
	}
	if got := after[rig.WiFi].Sub(before[rig.WiFi]).DownBytes; got > 1000 {
		t.Errorf("%d bytes came down by the other link", got)
	}

	sockets, err := r.Phone.Sockets()
	if err != nil || len(sockets) != 1 {
		t.Fatalf("%+v, %v", sockets, err)
	}
	s := sockets[0]
	if s.Local != netx.AddrPort(conn.LocalAddr()) || s.Local.Addr() != rig.PhoneLTE || s.Remote != server || s.Congestion != "reno" || s.Cwnd == 0 || s.RTTMs <= profile.LTE.RTTMs {
		t.Errorf("%+v", s)
	}
	there, err := r.Origin.Sockets()
	if err != nil || len(there) != 1 || there[0].Remote != s.Local || there[0].Congestion != "reno" {
		t.Errorf("%+v, %v", there, err)
	}
}

func TestDeadWiFi(t *testing.T) {
	r := start(t, find(t, "paper"))
	dead := false
	for _, step := range []func() error{nil, r.KillWiFi, r.ReviveWiFi} {
		if step != nil {
			if err := step(); err != nil {
				t.Fatal(err)
			}
			dead = !dead
		}
		patience := 20 * time.Second
		if dead {
			patience = time.Second
		}
		if _, err := get(t, rig.WiFi, 1000, patience); (err != nil) != dead {
			t.Errorf("dead %v: over WiFi: %v", dead, err)
		}
		if _, err := get(t, rig.LTE, 1000, 20*time.Second); err != nil {
			t.Errorf("dead %v: over LTE: %v", dead, err)
		}
	}
}

func TestUnshapedLinks(t *testing.T) {
	r := start(t, find(t, links.Unshaped))
	if _, err := r.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	before, _ := r.Traffic()
	const size = 1_000_000
	if _, err := get(t, rig.WiFi, size, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	after, err := r.Traffic()
	if got := after[rig.WiFi].Sub(before[rig.WiFi]).DownBytes; err != nil || got < size || got > size*11/10 {
		t.Errorf("%d bytes came down for a file of %d, %v", got, size, err)
	}
	if err := r.Apply(find(t, "paper")); err == nil {
		t.Error("a rig without shaping took links with it")
	}
	if err := r.Proxy.SetSysctl("net.ipv4.tcp_slow_start_after_idle", "0"); err != nil {
		t.Error(err)
	}
	if err := r.Proxy.SetSysctl("net.ipv4.tcp_no_such_setting", "0"); err == nil || !strings.HasPrefix(err.Error(), "proxy: sysctl net.ipv4.tcp_no_such_setting: ") {
		t.Errorf("%v", err)
	}
}
