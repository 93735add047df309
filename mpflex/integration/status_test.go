package integration

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mplab/control"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/status"
)

// statusOf requests the status of a program.
func statusOf(t testing.TB, socket string) status.Report {
	t.Helper()
	client, err := control.Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var r status.Report
	if err := client.Ask(t.Context(), map[string]string{"op": "status"}, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// streamsOf runs `mpflex status --streams --json` and parses its output.
func streamsOf(t testing.TB, socket string) status.Report {
	t.Helper()
	stdout, stderr, code := once(t, "phone", "status", "--control", socket, "--streams", "--json")
	var r status.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("exit code %d, %v: %q %s", code, err, stdout, stderr)
	}
	return r
}

// path returns a path of the only session in a report, or the zero value if it is not
// attached.
func path(r status.Report, name string) session.PathStatus {
	if len(r.Sessions) == 1 {
		for _, p := range r.Sessions[0].Paths {
			if p.Name == name {
				return p
			}
		}
	}
	return session.PathStatus{}
}

// endless serves an origin that sends until the end of the test.
func endless(t *testing.T) {
	t.Helper()
	chunk := payload(4, 64<<10)
	serveOrigin(t, web, func(conn *net.TCPConn) {
		defer conn.Close()
		for {
			if _, err := conn.Write(chunk); err != nil {
				return
			}
		}
	})
}

// TestStatusDuringADownload: both ends show traffic on both paths. Counters only grow.
func TestStatusDuringADownload(t *testing.T) {
	private(t, func(t *testing.T, plain bool) {
		needLab(t)
		dir := t.TempDir()
		agentSocket, proxySocket := filepath.Join(dir, "agent"), filepath.Join(dir, "proxy")
		startProxy(t, values{"control": proxySocket})
		changes := flex(plain)
		maps.Copy(changes, values{"control": agentSocket})
		startAgent(t, changes)
		endless(t)
		conn := dialPhone(t, web)
		go func() { _, _ = io.Copy(io.Discard, conn) }()

		var before status.Report
		eventually(t, "bytes over both paths", func() bool {
			before = statusOf(t, agentSocket)
			return path(before, "wlan0").BytesIn > 0 && path(before, "rmnet0").BytesIn > 0
		})
		atProxy := statusOf(t, proxySocket)
		var after, afterAtProxy status.Report
		eventually(t, "more bytes over both paths", func() bool {
			after, afterAtProxy = statusOf(t, agentSocket), statusOf(t, proxySocket)
			more := after.Connections.BytesDown > before.Connections.BytesDown
			for _, name := range []string{"wlan0", "rmnet0"} {
				more = more && path(after, name).BytesIn > path(before, name).BytesIn && path(afterAtProxy, name).BytesOut > path(atProxy, name).BytesOut
			}
			return more
		})
		grew(t, before, after)
		grew(t, atProxy, afterAtProxy)

		if after.Role != "agent" || after.Transport != "mpflex" || after.Connections.Open != 1 {
			t.Errorf("agent: %+v", after)
		}
		if afterAtProxy.Role != "proxy" || afterAtProxy.Transport != "" || afterAtProxy.Connections.Open != 1 || after.PID == afterAtProxy.PID {
			t.Errorf("proxy: %+v", afterAtProxy)
		}
		here, there := after.Sessions[0], afterAtProxy.Sessions[0]
		if here.ID != there.ID || here.Streams != 1 || there.Streams != 1 {
			t.Errorf("agent %+v, proxy %+v", here, there)
		}
		for _, p := range slices.Concat(here.Paths, there.Paths) {
			if p.Incarnation == 0 || p.RTTMS <= 0 || p.MinRTTMS <= 0 || p.WindowBytes <= 0 || p.Local == "" || p.Remote == "" {
				t.Errorf("%+v", p)
			}
		}
		for _, p := range there.Paths {
			if p.RateBPS <= 0 {
				t.Errorf("no rate: %+v", p)
			}
		}
		for _, socket := range []string{agentSocket, proxySocket} {
			list := streamsOf(t, socket).Sessions[0].Each
			if len(list) != 1 || list[0].Dst.String() != web || list[0].Src.String() != conn.LocalAddr().String() || len(list[0].Paths) != 2 {
				t.Errorf("%s: %+v", socket, list)
			}
		}
		if short, _, code := once(t, "phone", "status", "--control", agentSocket); code != 0 || strings.Count(short, " up ") < 2 || !strings.Contains(short, "rmnet0") {
			t.Errorf("exit code %d: %s", code, short)
		}
	})
}

// grew checks that no counter of a session has decreased.
func grew(t *testing.T, before, after status.Report) {
	t.Helper()
	if len(before.Sessions) != 1 || len(after.Sessions) != 1 {
		t.Fatalf("%d sessions, then %d", len(before.Sessions), len(after.Sessions))
	}
	if after.T <= before.T || after.UptimeS < before.UptimeS {
		t.Errorf("at %v, up %v; then at %v, up %v", before.T, before.UptimeS, after.T, after.UptimeS)
	}
	ofSession := func(s status.Session) []int64 {
		c := s.Counters
		return []int64{s.BytesOut, s.BytesIn, s.Ended, c.CopiedTail, c.CopiedStall, c.CopiedBuffer, c.CopiedRedundant, c.SentAgain, c.Duplicates}
	}
	ofPath := func(r status.Report, name string) []int64 {
		p := path(r, name)
		return []int64{p.BytesOut, p.BytesIn, p.MessagesOut, p.MessagesIn, p.CopiesOut, p.CopiesIn, p.ControlOut, int64(p.Framed)}
	}
	for _, pair := range [][2][]int64{
		{ofSession(before.Sessions[0]), ofSession(after.Sessions[0])},
		{ofPath(before, "wlan0"), ofPath(after, "wlan0")}, {ofPath(before, "rmnet0"), ofPath(after, "rmnet0")},
	} {
		for i := range pair[0] {
			if pair[1][i] < pair[0][i] {
				t.Errorf("a counter fell: %v, then %v", pair[0], pair[1])
			}
		}
	}
}

// TestStatusOfAPathThatEnds: the counters of an ended path stay, the reason why it
// cannot be attached again is reported, and the counters continue when it is attached.
func TestStatusOfAPathThatEnds(t *testing.T) {
	needLab(t)
	socket := filepath.Join(t.TempDir(), "agent")
	startProxy(t, nil)
	changes := flex(false)
	maps.Copy(changes, values{"control": socket})
	startAgent(t, changes)
	endless(t)
	conn := dialPhone(t, web)
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	var before status.Report
	eventually(t, "bytes over both paths", func() bool {
		before = statusOf(t, socket)
		return path(before, "wlan0").BytesIn > 0 && path(before, "rmnet0").BytesIn > 0
	})
	refuse(t, true)
	defer refuse(t, false)
	eventually(t, "a path that is gone", func() bool {
		s := statusOf(t, socket).Sessions[0]
		if len(s.Gone) != 1 || len(s.Missing) != 1 || s.Missing[0].Error == "" {
			return false
		}
		if g, m := s.Gone[0], s.Missing[0]; g.Name != "rmnet0" || g.BytesIn < path(before, "rmnet0").BytesIn || m.Interface != "rmnet0" || m.Path != g.ID {
			t.Errorf("%+v, before %+v", s, before)
		}
		return true
	})
	table, _, _ := once(t, "phone", "status", "--control", socket)
	if !strings.Contains(table, " down ") || !strings.Contains(table, "connecting to 10.64.3.2:7003: connection refused") {
		t.Errorf("%s", table)
	}
	refuse(t, false)
	eventually(t, "the path", func() bool {
		r := statusOf(t, socket)
		p := path(r, "rmnet0")
		return p.Incarnation > 1 && p.BytesIn > path(before, "rmnet0").BytesIn && len(r.Sessions[0].Missing)+len(r.Sessions[0].Gone) == 0
	})
}

// refuse makes the router reset and refuse connections over the phone's second
// interface, or ends that.
func refuse(t *testing.T, on bool) {
	t.Helper()
	output(t, "router", "nft", "add", "table", "ip", "refuse")
	output(t, "router", "nft", "delete", "table", "ip", "refuse")
	if on {
		output(t, "router", "nft", "add table ip refuse; add chain ip refuse forward { type filter hook forward priority 0; }; "+
			"add rule ip refuse forward iifname rmnet meta l4proto tcp reject with tcp reset")
	}
}

// TestStatusOfCarryingConnections: an agent without a session reports no session, but
// its open connections.
func TestStatusOfCarryingConnections(t *testing.T) {
	needLab(t)
	socket := filepath.Join(t.TempDir(), "agent")
	startProxy(t, nil)
	startAgent(t, values{"control": socket})
	serveOrigin(t, web, echo)
	conn := dialPhone(t, web)
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	r := streamsOf(t, socket)
	if r.Transport != "mptcp" || len(r.Sessions) != 0 || r.Connections.Open != 1 || len(r.OwnConnections) != 1 || r.OwnConnections[0].Dst.String() != web {
		t.Errorf("%+v", r)
	}
}

// TestControlSocket: the socket is removed with the program, only its owner can use it,
// and a program does not take it from another one.
func TestControlSocket(t *testing.T) {
	needLab(t)
	socket := filepath.Join(t.TempDir(), "proxy")
	p := startProxy(t, values{"control": socket})
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	second := writeConfig(t, proxyConfig(t, values{"control": socket, "listen": values{"tcp": "10.64.3.2:7101"}}))
	if _, stderr, code := once(t, "proxy", "proxy", "--config", second); code != 3 || !strings.Contains(stderr, "another mpflex serves it") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte(`{"op":"shutdown"}` + "\n" + `{"op":"paths"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(conn)
	var refused struct {
		OK    bool
		Error string
	}
	if err := answers.Decode(&refused); err != nil || refused.OK || refused.Error != `op: unknown operation "shutdown"; there are paths, status, streams` {
		t.Errorf("%+v, %v", refused, err)
	}
	var paths struct {
		OK bool
		status.Paths
	}
	if err := answers.Decode(&paths); err != nil || !paths.OK || paths.Sessions == nil || paths.T == 0 {
		t.Errorf("%+v, %v", paths, err)
	}
	p.stop(t)
	if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, stderr, code := once(t, "phone", "status", "--control", socket); code != 3 || !strings.Contains(stderr, "there is no such socket") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestStatusInTheLog: at both ends of a session there are records during traffic, none
// without, and one at the end.
func TestStatusInTheLog(t *testing.T) {
	needLab(t)
	const every = 0.1
	proxy := startProxy(t, values{"status_every_s": every})
	changes := flex(false)
	maps.Copy(changes, values{"status_every_s": every})
	agent := startAgent(t, changes)
	serveOrigin(t, web, echo)
	const size = 1 << 20
	conn := dialPhone(t, web)
	roundTrip(t, conn, payload(1, size))
	conn.Close()
	connections(t, agent, web, 1)
	connections(t, proxy, web, 1)
	read := func(p *program) []status.Record { return records[status.Record](t, p.log, "status") }
	quiet := func() bool { // five periods without a record
		a, b := len(read(agent)), len(read(proxy))
		time.Sleep(time.Duration(5 * every * float64(time.Second)))
		return a > 0 && b > 0 && len(read(agent)) == a && len(read(proxy)) == b
	}
	eventually(t, "idle sessions that write nothing", quiet)
	before := [][]status.Record{read(agent), read(proxy)}
	agent.stop(t)
	eventually(t, "the last record of the proxy", func() bool { return len(read(proxy)) > len(before[1]) })
	for i, p := range []*program{agent, proxy} {
		all := read(p)
		if len(all) != len(before[i])+1 {
			t.Errorf("%d records, %d before the end", len(all), len(before[i]))
		}
		for k, r := range all {
			if r.Final != (k == len(all)-1) || r.ID != all[0].ID {
				t.Errorf("record %d of %d: %+v", k, len(all), r)
			}
			if k > 0 && (r.BytesOut < all[k-1].BytesOut || r.BytesIn < all[k-1].BytesIn || r.T < all[k-1].T) {
				t.Errorf("counters fell: %+v, before %+v", r, all[k-1])
			}
		}
		last := all[len(all)-1]
		if last.BytesOut < size || last.BytesIn < size || last.Ended != 1 || len(last.Paths) != 0 || len(last.Gone) == 0 {
			t.Errorf("at the end: %+v", last)
		}
	}
	if a, b := read(agent)[0].ID, read(proxy)[0].ID; a != b {
		t.Errorf("session %s at the agent, %s at the proxy", a, b)
	}
}
