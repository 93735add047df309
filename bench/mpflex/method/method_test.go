package method

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/origin"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/rig/rigtest"
	"mplab/bench/mpflex/role"
)

func TestMain(m *testing.M) { rigtest.Main(m) }

func names(entries []Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.String())
	}
	return strings.Join(all, " ")
}

func TestLists(t *testing.T) {
	for text, want := range map[string]string{
		"mptcp":                     "mptcp/cubic mptcp/bbr",
		"tcp-wifi":                  "tcp-wifi/cubic",
		"tcp-wifi/bbr":              "tcp-wifi/bbr",
		"mptcp/bbr, yamux-mptcp":    "mptcp/bbr yamux-mptcp/cubic yamux-mptcp/bbr",
		"mpflex/cubic,mpflex/bbr":   "mpflex/cubic mpflex/bbr",
		"mptcp-relay,tcp-lte/cubic": "mptcp-relay/cubic tcp-lte/cubic",
	} {
		if got, err := ParseList(text); err != nil || names(got) != want {
			t.Errorf("%q: %s, %v", text, names(got), err)
		}
	}
	const all = "tcp-wifi, tcp-lte, mptcp, mptcp-relay, yamux-tcp, yamux-tls, yamux-mptcp, mpflex, mpflex-unset, mpflex-plain"
	for text, want := range map[string]string{
		"":                `method "": there are ` + all,
		"quic":            `method "quic": there are ` + all,
		"mptcp/vegas":     `method "mptcp/vegas": the congestion controls are cubic, bbr`,
		"mptcp,mptcp/bbr": `method "mptcp/bbr": mptcp/bbr is there twice`,
	} {
		if _, err := ParseList(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPathsAreThoseThatLive(t *testing.T) {
	socket := func(address string, backoff uint8) rig.Socket {
		return rig.Socket{Local: netip.MustParseAddrPort(address), Backoff: backoff}
	}
	proof := Proof{Carriers: []rig.Socket{socket("10.0.0.2:1", 0), socket("10.0.0.1:1", 0), socket("10.0.0.2:2", 0), socket("10.0.0.3:1", 2)}}
	if got := proof.Paths(); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}) {
		t.Errorf("%v", got)
	}
}

// TestEveryMethod: every existing method carries bytes in both directions over bare links, over the specified paths and
// with the specified congestion control, and again after a restart.
func TestEveryMethod(t *testing.T) {
	rigtest.Need(t)
	r, err := rig.New(false, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	if bare, err := links.Find(links.Unshaped); err != nil || r.Apply(bare) != nil {
		t.Fatal(err)
	}
	var contestants []*Contestant
	var listeners []origin.Listener
	for i, kind := range Kinds {
		c := New(Entry{kind, Congestions[i%len(Congestions)]}, r, i)
		contestants, listeners = append(contestants, c), append(listeners, c.Listener())
	}
	server, err := r.Origin.Start(role.Origin, role.Encode(listeners))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range contestants {
		t.Run(c.String(), func(t *testing.T) {
			for range 2 {
				err := c.Start(t.Context())
				if errors.Is(err, ErrAbsent) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				carry(t, c)
				if err := c.Stop(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Run("a transport that does not exist", func(t *testing.T) {
		p := place{r, "cubic", uint16(len(Kinds))}
		m := agentAndProxy(p, "sctp")
		if err := m.Start(t.Context()); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "sctp") {
			t.Errorf("%v", err)
		}
		if proof, err := m.Proof(nil); err != nil || proof.Program == "" || len(proof.Paths()) != 0 {
			t.Errorf("%+v, %v", proof, err)
		}
	})
}

func carry(t *testing.T, c *Contestant) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const size = 3_000_000
	for name, transfer := range map[string]func(conn io.ReadWriter) error{
		"get": func(conn io.ReadWriter) error { return origin.Get(conn, size, 1, nil) },
		"put": func(conn io.ReadWriter) error { return origin.Put(conn, size, 2) },
	} {
		conn, err := c.Dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := transfer(conn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// A second subflow may need a moment after so fast a transfer.
		var proof Proof
		for range 100 {
			if proof, err = c.Proof(conn); err != nil || len(proof.Paths()) == c.Paths() {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil || len(proof.Paths()) != c.Paths() || !slices.Equal(proof.Congestion, []string{c.Congestion}) || proof.Program != "" {
			t.Errorf("%s: %+v, %v", name, proof, err)
		}
		if multipath := proof.Multipath != nil && *proof.Multipath; multipath != (c.Name == MPTCP) {
			t.Errorf("%s: MPTCP: %v", name, multipath)
		}
		_ = conn.Close()
	}
}
