package scale

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mplab/bench/mpflex/holder"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/role"
	"mplab/control"
	"mplab/mpflex/config"
	"mplab/mpflex/status"
)

// Case is one measurement.
type Case struct {
	Name    string
	Clients int
	Streams int // per client
	Ask     byte
	Push    bool // the application sends until its writes block
	Budget  int64
}

// Cases returns the measurements described in docs/mpflex.md. A factor below 1 makes them smaller.
func Cases(factor float64) []Case {
	n := func(whole int) int { return max(1, int(float64(whole)*factor)) }
	return []Case{
		{Name: "silent", Clients: 1, Streams: n(10_000), Ask: holder.Echo},
		{Name: "silent", Clients: n(100), Streams: 100, Ask: holder.Echo},
		{Name: "downloads that nobody reads", Clients: 1, Streams: n(10_000), Ask: holder.Flood},
		{Name: "uploads that nobody reads", Clients: 1, Streams: n(10_000), Ask: holder.Deaf, Push: true},
		{Name: "downloads that nobody reads", Clients: n(100), Streams: 100, Ask: holder.Flood},
		{Name: "uploads that nobody reads", Clients: n(100), Streams: 100, Ask: holder.Deaf, Push: true},
	}
}

// Result holds the measured values. Memory is resident memory in bytes (proc(5)).
type Result struct {
	Case
	Begin, End   Memory // without connections, and at the end
	Peak         Memory
	Open, Charge int64 // at the end: the proxy's streams, and the bytes charged to its budget
	Failed       int   // connections that were refused or reset
}

// Memory is the memory of both programs; Agent is that of the first client.
type Memory struct{ Agent, Proxy int64 }

const (
	originAddress = "127.0.0.1:7100"
	proxyAddress  = "127.0.0.1:7003"
	firstPort     = 20000 // of the agents' listeners
	settle        = 3 * time.Second
	longest       = 3 * time.Minute // maximum time to open connections, and to fill them
)

// Run measures one case. It needs a separate network namespace.
func Run(ctx context.Context, c Case) (r Result, err error) {
	r.Case = c
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir, err := os.MkdirTemp("", "mpflex-scale-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary
	here := rig.Here()
	// Keep kernel buffers small: they are not measured here, and there are many.
	for _, key := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"} {
		if err := here.SetSysctl(key, "4096\t16384\t262144"); err != nil {
			return r, err
		}
	}
	programs, err := start(here, dir, c)
	defer func() {
		for _, p := range programs {
			err = errors.Join(err, p.Stop())
		}
	}()
	if err != nil {
		return r, err
	}
	proxy, agent := programs[1], programs[2]
	look := func() Memory { return Memory{resident(agent.PID()), resident(proxy.PID())} }
	time.Sleep(settle / 3)
	r.Begin = look()
	var conns []net.Conn
	var pushing sync.WaitGroup
	defer pushing.Wait()
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	for i := range c.Clients * c.Streams {
		conn, failed := open(ctx, firstPort+i%c.Clients, c.Ask)
		if failed != nil {
			r.Failed++
			continue
		}
		conns = append(conns, conn)
		if c.Push {
			pushing.Go(func() {
				for {
					if _, err := conn.Write(zeros); err != nil {
						return
					}
				}
			})
		}
	}
	// Wait until the memory is stable.
	begun, last, same := time.Now(), Memory{}, 0
	for same < 6 && time.Since(begun) < longest {
		time.Sleep(settle / 6)
		now := look()
		r.Peak.Agent, r.Peak.Proxy = max(r.Peak.Agent, now.Agent), max(r.Peak.Proxy, now.Proxy)
		if near(now.Proxy, last.Proxy) && near(now.Agent, last.Agent) {
			same++
		} else {
			same = 0
		}
		last = now
	}
	r.End = look()
	report, err := ask(ctx, filepath.Join(dir, "proxy.sock"))
	for _, s := range report.Sessions {
		r.Open, r.Charge = r.Open+int64(s.Streams), r.Charge+s.Memory
	}
	return r, err
}

var zeros = make([]byte, 64<<10)

func near(a, b int64) bool { return max(a, b)-min(a, b) < 1<<20 }

// start starts the origin, a proxy and the agents.
func start(here *rig.Node, dir string, c Case) (programs []*rig.Program, err error) {
	secrets := filepath.Join(dir, "clients") // one secret per client, by its name
	if err := os.Mkdir(secrets, 0o700); err != nil {
		return nil, err
	}
	for i := range c.Clients {
		if err := os.WriteFile(filepath.Join(secrets, client(i)), fmt.Appendf(nil, "the secret of client %04d, for measurements", i), 0o600); err != nil {
			return nil, err
		}
	}
	run := func(r role.Role, args ...string) {
		if err != nil {
			return
		}
		var p *rig.Program
		if p, err = here.Start(r, args...); err == nil {
			programs = append(programs, p)
		}
	}
	session := map[string]any{"budget_bytes": cmp.Or(c.Budget, config.DefaultProxyBudget)} // also for the agents
	configure := func(name string, value map[string]any) string {
		value["max_connections"], value["session"] = 20_000, session
		path := filepath.Join(dir, name+".json")
		if text, failed := json.Marshal(value); failed != nil {
			err = failed
		} else if failed := os.WriteFile(path, text, 0o600); failed != nil {
			err = failed
		}
		return path
	}
	run(role.Holder, role.Encode(originAddress))
	run(role.MPFlex, "proxy", "--config", configure("proxy", map[string]any{
		"clients_dir": secrets,
		"listen":      map[string]any{"mpflex": proxyAddress}, "allow": []string{"127.0.0.0/8:*"}, "control": filepath.Join(dir, "proxy.sock"),
	}))
	for i := range c.Clients {
		run(role.MPFlex, "agent", "--config", configure(client(i), map[string]any{
			"secret_file": filepath.Join(secrets, client(i)),
			"listen":      map[string]any{"socks": fmt.Sprintf("127.0.0.1:%d", firstPort+i)}, "proxy": proxyAddress, "transport": "mpflex",
			"paths": []map[string]any{{"device": ""}, {"device": "lo"}},
		}))
	}
	return programs, err
}

func client(i int) string { return fmt.Sprintf("client%04d", i) }

// open connects like an application: by SOCKS5, with the request to the origin. It waits for the first byte.
func open(ctx context.Context, port int, what byte) (net.Conn, error) {
	dialer := net.Dialer{Timeout: longest}
	conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(longest))
	origin := netip.MustParseAddrPort(originAddress)
	request := append([]byte{5, 1, 0, 5, 1, 0, 1}, origin.Addr().AsSlice()...)
	request = append(binary.BigEndian.AppendUint16(request, origin.Port()), what)
	const answer = 2 + 10 + 1
	if _, err = conn.Write(request); err == nil {
		_, err = io.ReadFull(conn, make([]byte, answer))
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, conn.SetDeadline(time.Time{})
}

func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, pages int64
	_, _ = fmt.Sscan(string(text), &size, &pages)
	return pages * int64(os.Getpagesize())
}

func ask(ctx context.Context, socket string) (r status.Report, err error) {
	client, err := control.Dial(ctx, socket)
	if err != nil {
		return r, err
	}
	defer client.Close() //nolint:errcheck // it was only read
	return r, client.Ask(ctx, map[string]string{"op": "status"}, &r)
}

// Head is the header of the table of results.
const Head = "| connections | clients × each | agent | a connection | proxy | a connection | highest, proxy | charged | open in the end |\n" +
	"| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"

// Row returns the result as a table row.
func (r Result) Row() string {
	all := int64(r.Clients * r.Streams)
	return fmt.Sprintf("| %s | %d × %d | %s | %s | %s | %s | %s | %s | %d of %d |\n", r.Name, r.Clients, r.Streams,
		megabytes(r.End.Agent), kilobytes((r.End.Agent-r.Begin.Agent)/int64(r.Streams)),
		megabytes(r.End.Proxy), kilobytes((r.End.Proxy-r.Begin.Proxy)/all), megabytes(r.Peak.Proxy), megabytes(r.Charge), r.Open, all)
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }
func kilobytes(n int64) string { return fmt.Sprintf("%.1f kB", float64(n)/1e3) }
