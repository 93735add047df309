package socks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mplab/internal/netx"
	"mplab/internal/testkit"
)

// named is the source address for answers from a domain.
var named = netip.MustParseAddrPort("192.0.2.7:53")

// answerUpperCase answers each datagram in upper case, with its destination as the
// source.
func answerUpperCase(t *testing.T) func(context.Context, Request, *Association) {
	return func(_ context.Context, _ Request, a *Association) {
		for {
			datagram, destination, err := a.Receive()
			if err != nil {
				return
			}
			source := destination.AddrPort()
			if destination.Domain == originName {
				source = named
			}
			if err := a.Send(bytes.ToUpper(datagram), source); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
	}
}

// rawClient is a client of a UDP association without package code.
type rawClient struct {
	control *net.TCPConn
	relay   netip.AddrPort // destination of the datagrams
}

// associate requests an association. stated is the address from which the client says
// it will send.
func associate(t *testing.T, server, stated netip.AddrPort) rawClient {
	t.Helper()
	control := dial(t, server, greeting+request(commandAssociate, stated))
	if _, err := io.ReadFull(control, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	code, bound, err := readMessage(control)
	if err != nil || code != 0 {
		t.Fatalf("%s, %v", Code(code), err)
	}
	return rawClient{control, bound.AddrPort()}
}

// socket opens a UDP socket on a loopback address.
func socket(t *testing.T, local string) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(local)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	return conn
}

func (c rawClient) send(t *testing.T, from *net.UDPConn, datagram string) {
	t.Helper()
	if _, err := from.WriteToUDPAddrPort([]byte(datagram), c.relay); err != nil {
		t.Fatal(err)
	}
}

// receive expects a datagram from the server.
func (c rawClient) receive(t *testing.T, at *net.UDPConn, want string) {
	t.Helper()
	buffer := make([]byte, 2000)
	n, from, err := at.ReadFromUDPAddrPort(buffer)
	if err != nil || from != c.relay || string(buffer[:n]) != want {
		t.Errorf("got  %q from %s, %v\nwant %q", buffer[:n], from, err, want)
	}
}

const (
	toAddress = "\x00\x00\x00\x01\x0a\x41\x00\x02\x00\x35"
	toDomain  = "\x00\x00\x00\x03\x0borigin.test\x00\x35"
	to6       = "\x00\x00\x00\x04\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x35"
	fromNamed = "\x00\x00\x00\x01\xc0\x00\x02\x07\x00\x35"
)

var unknown = netip.MustParseAddrPort("0.0.0.0:0")

func TestDatagrams(t *testing.T) {
	s := &Server{Handler: Handler{Associate: answerUpperCase(t)}}
	client := associate(t, serve(t, s), unknown)
	if !client.relay.Addr().IsLoopback() {
		t.Errorf("datagrams are taken at %s", client.relay)
	}
	own := socket(t, "127.0.0.1:0")
	elsewhere := socket(t, "127.0.0.2:0")
	client.send(t, elsewhere, toAddress+"before the client") // must not become the client
	for _, c := range []struct{ sent, want string }{
		{toAddress + "query", toAddress + "QUERY"},
		{to6 + "query", to6 + "QUERY"},
		{toDomain + "query", fromNamed + "QUERY"},
		{toAddress, toAddress},
	} {
		client.send(t, own, c.sent)
		client.receive(t, own, c.want)
	}
	// Datagrams dropped before the next answer are counted by then.
	other := socket(t, "127.0.0.1:0")
	client.send(t, own, "\x00\x00\x01\x01\x0a\x41\x00\x02\x00\x35fragment")
	client.send(t, own, "\x00\x00\x00\x05")
	client.send(t, own, "")
	client.send(t, other, toAddress+"another port")
	client.send(t, elsewhere, toAddress+"another host")
	client.send(t, own, toAddress+"last")
	client.receive(t, own, toAddress+"LAST")
	counters := &s.Counters
	if fragments, malformed, foreign := counters.Fragments.Load(), counters.Malformed.Load(), counters.Foreign.Load(); fragments != 1 || malformed != 2 || foreign != 3 {
		t.Errorf("%d fragments, %d malformed, %d foreign", fragments, malformed, foreign)
	}
}

// TestStatedAddress checks that a client may state the address from which it will send,
// and that an address that is not its own is ignored.
func TestStatedAddress(t *testing.T) {
	s := &Server{Handler: Handler{Associate: answerUpperCase(t)}}
	server := serve(t, s)
	own, other := socket(t, "127.0.0.1:0"), socket(t, "127.0.0.1:0")
	port := own.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "::"} {
		client := associate(t, server, netip.AddrPortFrom(netip.MustParseAddr(host), port))
		before := s.Counters.Foreign.Load()
		client.send(t, other, toAddress+"not mine")
		client.send(t, own, toAddress+"mine")
		client.receive(t, own, toAddress+"MINE")
		if got := s.Counters.Foreign.Load() - before; got != 1 {
			t.Errorf("%s: %d foreign", host, got)
		}
	}
	client := associate(t, server, netip.MustParseAddrPort("10.65.0.2:53"))
	client.send(t, own, toAddress+"mine")
	client.receive(t, own, toAddress+"MINE")
}

// TestEndsOfAnAssociation has the ends of an association, with the handler's error.
func TestEndsOfAnAssociation(t *testing.T) {
	ended := make(chan error, 1)
	handler := Handler{Associate: func(ctx context.Context, _ Request, a *Association) {
		if err := a.Send([]byte("too early"), named); !errors.Is(err, ErrNoClient) {
			t.Errorf("sent before the client was heard: %v", err)
		}
		_, _, err := a.Receive()
		if err == nil {
			_, _, err = a.Receive()
		}
		ended <- err
		if errors.Is(err, ErrEnded) && ctx.Err() == nil {
			t.Error("the context has not ended")
		}
	}}
	t.Run("the client closes", func(t *testing.T) {
		client := associate(t, serve(t, &Server{Handler: handler}), unknown)
		client.send(t, socket(t, "127.0.0.1:0"), toAddress)
		client.control.Close()
		if err := <-ended; !errors.Is(err, ErrEnded) {
			t.Error(err)
		}
	})
	t.Run("silence", func(t *testing.T) {
		client := associate(t, serve(t, &Server{Handler: handler, Limits: Limits{Idle: 20 * time.Millisecond}}), unknown)
		if err := <-ended; !errors.Is(err, ErrIdle) {
			t.Error(err)
		}
		if _, err := io.ReadAll(client.control); err != nil {
			t.Errorf("the client's connection: %v", err)
		}
	})
}

// TestSendingIsActivity checks that an association in which only the server sends is
// not idle: its activity is checked when the read deadline has passed.
func TestSendingIsActivity(t *testing.T) {
	ended := make(chan error, 1)
	s := &Server{Handler: Handler{Associate: func(_ context.Context, _ Request, a *Association) {
		if _, _, err := a.Receive(); err != nil {
			t.Error(err)
		}
		a.activity = netx.Activity{} // as if no byte had moved since the program started
		if err := a.Send([]byte("tick"), named); err != nil {
			t.Error(err)
		}
		if a.activity.Last() == 0 {
			t.Error("a datagram was sent, and nothing has moved")
		}
		_ = a.socket.SetReadDeadline(time.Unix(1, 0))
		_, _, err := a.Receive()
		ended <- err
	}}}
	client := associate(t, serve(t, s), unknown)
	own := socket(t, "127.0.0.1:0")
	client.send(t, own, toAddress)
	client.receive(t, own, "\x00\x00\x00\x01\xc0\x00\x02\x07\x00\x35tick")
	client.send(t, own, toAddress)
	if err := <-ended; err != nil {
		t.Errorf("the deadline passed shortly after a datagram was sent: %v", err)
	}
}

func TestAssociationLimit(t *testing.T) {
	s := &Server{Handler: Handler{Associate: answerUpperCase(t)}, Limits: Limits{Associations: 1}}
	server := serve(t, s)
	first := associate(t, server, unknown)
	second := dial(t, server, greeting+request(commandAssociate, unknown))
	if got, err := io.ReadAll(second); err != nil || !strings.HasPrefix(string(got), "\x05\x00\x05\x01") {
		t.Errorf("%q, %v", got, err)
	}
	if got := s.Counters.OverLimit.Load(); got != 1 {
		t.Errorf("%d counted", got)
	}
	first.control.Close()
	testkit.Eventually(t, "room again", func() bool { return s.associations.Load() == 0 })
	associate(t, server, unknown)
}

func TestTunnel(t *testing.T) {
	s := &Server{Handler: Handler{Associate: answerUpperCase(t)}, Users: map[string]string{"me": "secret"}}
	server := serve(t, s)
	tunnel, err := OpenTunnel(t.Context(), server, &Credentials{"me", "secret"})
	if err != nil {
		t.Fatal(err)
	}
	_ = tunnel.SetReadDeadline(time.Now().Add(testkit.Patience))
	buffer := make([]byte, 2000)
	for _, c := range []struct{ destination, source Address }{
		{FromAddrPort(named), FromAddrPort(named)},
		{Address{Domain: originName, Port: 53}, FromAddrPort(named)},
	} {
		if err := tunnel.Send([]byte("query"), c.destination); err != nil {
			t.Fatal(err)
		}
		if got, source, err := tunnel.Receive(buffer); err != nil || string(got) != "QUERY" || source != c.source {
			t.Errorf("%s: %q from %s, %v", c.destination, got, source, err)
		}
	}
	if err := tunnel.Send(nil, Address{Domain: strings.Repeat("a", maxDomain+1)}); !errors.Is(err, ErrFormat) {
		t.Errorf("a domain that is too long: %v", err)
	}
	if err := tunnel.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := tunnel.Receive(buffer); !errors.Is(err, net.ErrClosed) {
		t.Errorf("received after the end: %v", err)
	}
	for _, c := range []struct {
		credentials *Credentials
		want        error
	}{{nil, ErrMethod}, {&Credentials{"me", "guess"}, ErrUser}} {
		if _, err := OpenTunnel(t.Context(), server, c.credentials); !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.credentials, err)
		}
	}
}

// TestTunnelEndedByTheServer checks that a server that ends an association ends the
// tunnel.
func TestTunnelEndedByTheServer(t *testing.T) {
	server := serve(t, &Server{Handler: Handler{Associate: func(context.Context, Request, *Association) {}}})
	tunnel, err := OpenTunnel(t.Context(), server, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.Close()
	_ = tunnel.SetReadDeadline(time.Now().Add(testkit.Patience))
	if _, _, err := tunnel.Receive(make([]byte, 100)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	gone := closedPort(t)
	if _, err := OpenTunnel(t.Context(), gone, nil); err == nil || !strings.Contains(err.Error(), gone.String()) {
		t.Errorf("no server: %v", err)
	}
}

// pySocks sends one datagram through the server and prints the answer.
const pySocks = `
import socks, sys
s = socks.socksocket(type=socks.socket.SOCK_DGRAM)
s.settimeout(20)
s.set_proxy(socks.SOCKS5, "127.0.0.1", int(sys.argv[1]), username="me", password="secret")
s.sendto(b"query", ("192.0.2.7", 53))
data, source = s.recvfrom(100)
print(data.decode(), *source)
`

func TestPySocks(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	if err := exec.Command(python, "-c", "import socks").Run(); err != nil {
		t.Skip("python3 has no PySocks")
	}
	s := &Server{Handler: Handler{Associate: answerUpperCase(t)}, Users: map[string]string{"me": "secret"}}
	port := serve(t, s).String()[len("127.0.0.1:"):]
	output, err := exec.Command(python, "-c", pySocks, port).CombinedOutput()
	if err != nil || string(output) != "QUERY 192.0.2.7 53\n" {
		t.Errorf("%s%v", output, err)
	}
}
