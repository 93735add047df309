package udprelay

import (
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"mplab/internal/jsonlog"
	"mplab/internal/netx"
	"mplab/internal/testkit"
	"mplab/mpflex/config"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/wire"
)

// delivery is a received answer.
type delivery struct {
	client      Client
	association uint32
	source      netip.AddrPort
	datagram    string
}

// harness is a relay whose log and deliveries the tests can read.
type harness struct {
	*Relay
	back chan delivery
	log  string
}

// newRelay returns a relay for loopback addresses. At the end of the test it checks for
// leaks.
func newRelay(t *testing.T, limits Limits) harness {
	t.Helper()
	goroutines, descriptors := runtime.NumGoroutine(), testkit.Descriptors(t)
	allow, err := config.ParseAllow([]string{"127.0.0.0/8:*", "[::1/128]:*", "224.0.0.0/4:*", "0.0.0.0/32:*"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log.jsonl")
	log, err := jsonlog.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	h := harness{back: make(chan delivery, 10_000), log: path}
	h.Relay = New(Options{Permits: allow.Permits, Limits: limits, Log: log,
		Deliver: func(client Client, association uint32, source netip.AddrPort, _ byte, datagram []byte) {
			h.back <- delivery{client, association, source, string(datagram)}
		}})
	t.Cleanup(func() {
		h.Close()
		_ = log.Close()
		if n := h.Associations(); n != 0 || len(h.perClient) != 0 {
			t.Errorf("%d associations of %d clients are left", n, len(h.perClient))
		}
		testkit.Eventually(t, "all goroutines ended", func() bool { return runtime.NumGoroutine() <= goroutines })
		if now := testkit.Descriptors(t); now > descriptors {
			t.Errorf("%d descriptors, %d before", now, descriptors)
		}
	})
	return h
}

func (h harness) receive(t *testing.T, want delivery) {
	t.Helper()
	select {
	case got := <-h.back:
		if got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	case <-time.After(testkit.Patience):
		t.Fatalf("did not come: %+v", want)
	}
}

// records reads the records of one event from the log.
func records[R any](t *testing.T, h harness, event string) []R {
	t.Helper()
	return testkit.Records[R](t, h.log, event)
}

// noticeRead holds the fields of a Notice that the tests use.
type noticeRead struct {
	Client, Session, Destination, Error string
	Association                         uint32
	Suppressed                          uint64
}

// recordRead holds the fields of a Record that the tests use.
type recordRead struct {
	Client, Session, Status string
	Association             uint32
	Destinations            int
	Up                      uint64 `json:"datagrams_up"`
	Down                    uint64 `json:"datagrams_down"`
	BytesUp                 uint64 `json:"bytes_up"`
	BytesDown               uint64 `json:"bytes_down"`
}

// destination is a UDP socket that the tests read and write.
type destination struct{ *net.UDPConn }

func listen(t *testing.T, address string) destination {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	return destination{conn}
}

func (d destination) addr() netip.AddrPort { return netx.AddrPort(d.LocalAddr()) }

// receive expects a datagram and returns its source.
func (d destination) receive(t *testing.T, want string) netip.AddrPort {
	t.Helper()
	buffer := make([]byte, netx.MaxDatagram)
	n, from, err := d.ReadFromUDPAddrPort(buffer)
	if err != nil || string(buffer[:n]) != want {
		t.Fatalf("%d bytes, %v; want %d", n, err, len(want))
	}
	return from
}

func (d destination) send(t *testing.T, datagram string, to netip.AddrPort) {
	t.Helper()
	if _, err := d.WriteToUDPAddrPort([]byte(datagram), to); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, h harness, client Client, association uint32, to netip.AddrPort, datagram string) {
	t.Helper()
	if err := h.Send(client, association, to, 0, []byte(datagram)); err != nil {
		t.Fatalf("to %s: %v", to, err)
	}
}

var (
	alice = Client{identity.SessionKey{Client: identity.ID{1}, Session: wire.SessionID{1}}, "alice"}
	bob   = Client{identity.SessionKey{Client: identity.ID{2}, Session: wire.SessionID{1}}, "bob"} // has the same session number
)
