package agent_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"mplab/internal/jsonlog"
	"mplab/internal/testkit"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/agent"
	"mplab/mpflex/internal/proxy"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/status"
)

// lab is an agent and a proxy on the loopback interface, without redirection: all
// connections to the agent have the origin as their destination.
type lab struct {
	agent    netip.AddrPort
	agentLog string
	status   *status.Source
	stop     func()
}

var loopback = config.Address{AddrPort: netip.MustParseAddrPort("127.0.0.1:0")}

func newLab(t *testing.T, origin string, change func(*config.Agent)) lab {
	t.Helper()
	directory := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup

	allowed, err := config.ParseAllow([]string{"127.0.0.0/8:*"})
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("a secret for the tests")
	proxyLog := open(t, filepath.Join(directory, "proxy.jsonl"))
	p, err := proxy.New(config.Proxy{
		Listen: config.ProxyListen{TCP: loopback}, Clients: []identity.Credential{{Secret: secret}}, Allowed: allowed,
		MaxConnections: 500, IdleTimeoutS: 60,
	}, proxyLog)
	if err != nil {
		t.Fatal(err)
	}
	serving, end := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { p.Run(serving) })

	c := config.Agent{
		Listen: config.AgentListen{Redirect: loopback}, Proxy: config.Address{AddrPort: p.Listening(config.TCP)},
		Transport: config.TCP, Secret: secret, MaxConnections: 500, IdleTimeoutS: 60,
	}
	if change != nil {
		change(&c)
	}
	path := filepath.Join(directory, "agent.jsonl")
	agentLog := open(t, path)
	a, err := agent.New(ctx, c, agentLog)
	if err != nil {
		t.Fatal(err)
	}
	a.Destination = func(*net.TCPConn) (netip.AddrPort, error) { return netip.ParseAddrPort(origin) }
	running.Go(func() { a.Run(ctx) })

	redirect, _ := a.Listening()
	stop := sync.OnceFunc(func() {
		cancel()
		running.Wait()
		end()
		served.Wait()
		_ = agentLog.Close()
		_ = proxyLog.Close()
	})
	t.Cleanup(stop)
	return lab{redirect, path, a.Status(), stop}
}

func open(t *testing.T, path string) *jsonlog.Log {
	t.Helper()
	log, err := jsonlog.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func (l lab) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", l.agent.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// read opens a connection and reads it to its end. A reset may arrive as early as the
// connect.
func (l lab) read() ([]byte, error) {
	conn, err := net.Dial("tcp", l.agent.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return io.ReadAll(conn)
}

func (l lab) records(t *testing.T) []connlog.Connection {
	t.Helper()
	return testkit.Records[connlog.Connection](t, l.agentLog, "connection")
}

func TestBytesArriveAndNothingIsLeft(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	l := newLab(t, testkit.Echo(t).String(), nil)
	const count = 50
	var wait sync.WaitGroup
	for i := range count {
		conn := l.dial(t)
		wait.Go(func() {
			sent := bytes.Repeat([]byte{byte(i)}, 300_000+i)
			go func() {
				_, _ = conn.Write(sent)
				_ = conn.CloseWrite()
			}()
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("connection %d: %d of %d bytes, %v", i, len(got), len(sent), err)
			}
			_ = conn.Close()
		})
	}
	wait.Wait()
	testkit.Eventually(t, "all records", func() bool { return len(l.records(t)) == count })
	l.stop()
	for _, record := range l.records(t) {
		if record.Status != connlog.Closed || record.BytesUp != record.BytesDown || record.BytesUp < 300_000 {
			t.Errorf("%+v", record)
		}
	}
	// The echo server's accept goroutine stays until the end of the test, that of
	// package os/signal forever.
	testkit.Eventually(t, "goroutines ended", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
}

func TestShutdownLogsOpenConnections(t *testing.T) {
	l := newLab(t, testkit.Echo(t).String(), nil)
	conn := l.dial(t)
	_, _ = conn.Write([]byte("x"))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	l.stop()
	if got := l.records(t); len(got) != 1 || got[0].Status != connlog.Shutdown || got[0].BytesUp != 1 || got[0].BytesDown != 1 {
		t.Errorf("%+v", got)
	}
	if _, err := io.ReadAll(conn); err == nil {
		t.Error("the application saw an orderly end")
	}
}

func TestIdleConnectionIsReset(t *testing.T) {
	l := newLab(t, testkit.Echo(t).String(), func(c *config.Agent) { c.IdleTimeoutS = 0.05 })
	if _, err := l.read(); err == nil {
		t.Error("the application saw an orderly end")
	}
	testkit.Eventually(t, "a record", func() bool { return len(l.records(t)) == 1 })
	if got := l.records(t)[0]; got.Status != connlog.Timeout || got.Error != "idle timeout" {
		t.Errorf("%+v", got)
	}
}

func TestConnectionLimit(t *testing.T) {
	l := newLab(t, testkit.Echo(t).String(), func(c *config.Agent) { c.MaxConnections = 1 })
	first := l.dial(t)
	_, _ = first.Write([]byte("x"))
	if _, err := io.ReadFull(first, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.read(); err == nil {
		t.Error("the second application saw an orderly end")
	}
	testkit.Eventually(t, "a record", func() bool { return len(l.records(t)) == 1 })
	if got := l.records(t)[0]; got.Status != connlog.Refused || !strings.Contains(got.Error, "limit") {
		t.Errorf("%+v", got)
	}
}

func TestProxyThatIsNoProxy(t *testing.T) {
	echo := testkit.Echo(t).String() // returns the hello as the answer
	l := newLab(t, echo, func(c *config.Agent) { c.Proxy.AddrPort = netip.MustParseAddrPort(echo) })
	if _, err := l.read(); err == nil {
		t.Error("the application saw an orderly end")
	}
	testkit.Eventually(t, "a record", func() bool { return len(l.records(t)) == 1 })
	if got := l.records(t)[0]; got.Status != connlog.Refused || got.BytesDown != 0 {
		t.Errorf("%+v", got)
	}
}

func TestWithoutRedirection(t *testing.T) {
	l := newLab(t, "", nil) // "" is no destination
	if _, err := l.read(); err == nil {
		t.Error("the application saw an orderly end")
	}
}
