package integration

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"mplab/mpflex/connlog"
)

// flex returns the settings of an agent with a session over both interfaces.
func flex(plain bool) values {
	v := values{
		"transport": "mpflex", "proxy": "10.64.3.2:7003", "plain": plain,
		"paths": []values{{"device": "wlan0"}, {"device": "rmnet0"}},
	}
	if plain {
		v["proxy"] = "10.64.3.2:7004"
	}
	return v
}

// interfaces returns the interfaces that carried a connection, sorted.
func interfaces(c connlog.Connection) []string {
	var names []string
	for _, p := range c.Paths {
		if p.BytesIn+p.BytesOut > 0 {
			names = append(names, p.Interface)
		}
	}
	slices.Sort(names)
	return names
}

func TestSessionOverTwoPaths(t *testing.T) {
	private(t, func(t *testing.T, plain bool) {
		s := start(t, flex(plain))
		serveOrigin(t, web, echo)
		const size = 8 << 20
		conn := dialPhone(t, web)
		roundTrip(t, conn, payload(1, size))
		conn.Close()
		got := connections(t, s.agent, web, 1)[0]
		if got.Status != connlog.Closed || got.BytesUp != size || got.BytesDown != size || got.Transport != "mpflex" || got.Stream == 0 {
			t.Errorf("agent: %+v", got)
		}
		if names := interfaces(got); !slices.Equal(names, []string{"rmnet0", "wlan0"}) {
			t.Errorf("carried by %v", names)
		}
		there := connections(t, s.proxy, web, 1)[0]
		if there.Status != connlog.Closed || there.BytesUp != size || there.BytesDown != size || there.Src != got.Src {
			t.Errorf("proxy: %+v", there)
		}
		for _, c := range []connlog.Connection{got, there} {
			if c.WaitedMS == nil || *c.WaitedMS < 0 || *c.WaitedMS > 1000*c.DurationS {
				t.Errorf("a byte waited %v ms in a stream of %g s", c.WaitedMS, c.DurationS)
			}
		}
	})
}

// private runs a test with encrypted paths and with plain ones.
func private(t *testing.T, test func(t *testing.T, plain bool)) {
	t.Run("private", func(t *testing.T) { test(t, false) })
	t.Run("plain", func(t *testing.T) { test(t, true) })
}

func TestManyConnectionsOverASession(t *testing.T) {
	s := start(t, flex(false))
	serveOrigin(t, web, echo)
	var all sync.WaitGroup
	for i := range 100 {
		conn := dialPhone(t, web)
		all.Go(func() {
			roundTrip(t, conn, payload(uint64(i), 1<<(i%18)))
			conn.Close()
		})
	}
	all.Wait()
	for _, c := range connections(t, s.agent, web, 100) {
		if c.Status != connlog.Closed {
			t.Errorf("%+v", c)
		}
	}
}

// TestSessionSurvivesItsPaths: an interface goes down during a download and comes back.
// The download is right to the last byte.
func TestSessionSurvivesItsPaths(t *testing.T) {
	private(t, func(t *testing.T, plain bool) {
		s := start(t, flex(plain))
		sent := payload(9, 24<<20)
		serveOrigin(t, web, func(conn *net.TCPConn) {
			defer conn.Close()
			for part := range slices.Chunk(sent, 256<<10) {
				if _, err := conn.Write(part); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
		conn := dialPhone(t, web)
		go func() {
			time.Sleep(200 * time.Millisecond)
			for _, device := range []string{"wlan0", "rmnet0", "wlan0"} {
				output(t, "phone", "ip", "link", "set", device, "down")
				time.Sleep(300 * time.Millisecond)
				restore(t, device)
				time.Sleep(300 * time.Millisecond)
			}
		}()
		received, err := io.ReadAll(conn)
		if err != nil || !slices.Equal(received, sent) {
			t.Errorf("%d of %d bytes, %v", len(received), len(sent), err)
		}
		conn.Close()
		if got := connections(t, s.agent, web, 1)[0]; got.Status != connlog.Closed {
			t.Errorf("%+v", got)
		}
	})
}

// restore brings an interface of the phone back to its state after buildLab.
func restore(t *testing.T, device string) {
	t.Helper()
	gateway, table, metric := "10.64.1.1", "1", "100"
	if device == "rmnet0" {
		gateway, table, metric = "10.64.2.1", "2", "200"
	}
	output(t, "phone", "ip", "link", "set", device, "up")
	output(t, "phone", "ip", "route", "replace", "default", "via", gateway, "dev", device, "metric", metric)
	output(t, "phone", "ip", "route", "replace", "default", "via", gateway, "dev", device, "table", table)
}

func TestRefusedOverASession(t *testing.T) {
	start(t, flex(false))
	if err := exchangeOnce(t, "10.65.0.9:81", true); err == nil {
		t.Error("a destination outside of the allow list was reached")
	}
	if err := exchangeOnce(t, "10.65.0.9:80", true); err == nil {
		t.Error("a destination that nobody serves was reached")
	}
}

// pathEvents returns the path records of an agent.
func pathEvents(t *testing.T, p *program) (what []string) {
	for _, e := range records[connlog.PathEvent](t, p.log, "path") {
		what = append(what, e.What+" "+e.Interface)
	}
	return what
}

// TestBlackHole: an interface stays up and loses all packets. Its messages go over the
// other one. It is used again when it is back.
func TestBlackHole(t *testing.T) {
	private(t, func(t *testing.T, plain bool) {
		s := start(t, flex(plain))
		const size = 16 << 20
		sent := payload(3, size)
		halfway := make(chan bool)
		serveOrigin(t, web, func(conn *net.TCPConn) {
			defer conn.Close()
			_, _ = conn.Write(sent[:size/2])
			<-halfway
			_, _ = conn.Write(sent[size/2:])
		})
		conn := dialPhone(t, web)
		received := make([]byte, size)
		if _, err := io.ReadFull(conn, received[:size/2]); err != nil {
			t.Fatal(err)
		}
		hole(t, true)
		defer hole(t, false)
		close(halfway)
		if n, err := io.ReadFull(conn, received[size/2:]); err != nil || !slices.Equal(received, sent) {
			t.Fatalf("%d bytes while the path was a hole, %v", n, err)
		}
		conn.Close()
		hole(t, false)
		for try := 0; ; try++ { // until both carry data again
			before := len(records[connlog.Connection](t, s.agent.log, "connection"))
			conn := dialPhone(t, web)
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Fatal(err)
			}
			conn.Close()
			all := connections(t, s.agent, web, before+1)
			if names := interfaces(all[len(all)-1]); len(names) == 2 {
				return
			}
			if try == 100 {
				t.Fatalf("the path is not used again: %v", pathEvents(t, s.agent))
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// hole makes the router lose all packets of the WiFi network, or ends that.
func hole(t *testing.T, on bool) {
	t.Helper()
	if on {
		drop(t, "add rule ip hole forward iifname wlan drop; add rule ip hole forward oifname wlan drop")
	} else {
		drop(t, "")
	}
}

// drop makes the router lose packets by these rules of nft(8). They replace earlier
// ones.
func drop(t *testing.T, rules string) {
	t.Helper()
	output(t, "router", "nft", "add table ip hole; delete table ip hole; add table ip hole; "+
		"add chain ip hole forward { type filter hook forward priority 0; }; "+rules)
}

// TestBackupPath: a backup path carries nothing in either direction while the other one
// works.
func TestBackupPath(t *testing.T) {
	changes := flex(false)
	changes["paths"] = []values{{"device": "wlan0", "backup": true}, {"device": "rmnet0"}}
	s := start(t, changes)
	serveOrigin(t, web, echo)
	for try := 0; ; try++ { // until the regular path is attached
		conn := dialPhone(t, web)
		roundTrip(t, conn, payload(1, 2<<20))
		conn.Close()
		all := connections(t, s.agent, web, try+1)
		names, there := interfaces(all[try]), interfaces(connections(t, s.proxy, web, try+1)[try])
		if slices.Equal(names, []string{"rmnet0"}) && slices.Equal(there, []string{"rmnet0"}) {
			break
		}
		if try == 20 {
			t.Fatalf("carried by %v, seen from the proxy %v", names, there)
		}
	}
	hole(t, false)
	output(t, "phone", "ip", "link", "set", "rmnet0", "down")
	defer restore(t, "rmnet0")
	conn := dialPhone(t, web)
	roundTrip(t, conn, payload(2, 100_000))
}
