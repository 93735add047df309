package udprelay

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mplab/internal/netx"
	"mplab/internal/testkit"
	"mplab/mpflex/config"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/wire"
)

// TestAnswersComeBack checks that an association has one address for all destinations,
// and that each answer is returned to it with its source.
func TestAnswersComeBack(t *testing.T) {
	h := newRelay(t, Limits{})
	first, second := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.2:0")
	large := strings.Repeat("x", 60_000)
	send(t, h, alice, 7, first.addr(), "to the first")
	send(t, h, alice, 7, second.addr(), large)
	send(t, h, alice, 8, first.addr(), "")
	send(t, h, bob, 7, netip.MustParseAddrPort("[::ffff:127.0.0.1]:"+fmt.Sprint(first.addr().Port())), "bob's")

	own := first.receive(t, "to the first")
	if other := second.receive(t, large); other.Port() != own.Port() {
		t.Errorf("one association sends from %s and %s", own, other)
	}
	eighth, bobs := first.receive(t, ""), first.receive(t, "bob's")
	if eighth == own || bobs == own || bobs == eighth {
		t.Errorf("associations share an address: %s, %s, %s", own, eighth, bobs)
	}
	second.send(t, large, own)
	h.receive(t, delivery{alice, 7, second.addr(), large})
	first.send(t, "", own)
	h.receive(t, delivery{alice, 7, first.addr(), ""})
	first.send(t, "for bob", bobs)
	h.receive(t, delivery{bob, 7, first.addr(), "for bob"})

	h.Close()
	if err := h.Send(alice, 9, first.addr(), 0, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("sent after the end: %v", err)
	}
	got := records[recordRead](t, h, "udp")
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for _, record := range got {
		want := map[string]recordRead{
			"alice 7": {Destinations: 2, Up: 2, Down: 2, BytesUp: 60_012, BytesDown: 60_000},
			"alice 8": {Destinations: 1, Up: 1},
			"bob 7":   {Destinations: 1, Up: 1, Down: 1, BytesUp: 5, BytesDown: 7},
		}[fmt.Sprint(record.Client, " ", record.Association)]
		want.Client, want.Session, want.Association, want.Status = record.Client, "010000000000", record.Association, "shutdown"
		if record != want {
			t.Errorf("got  %+v\nwant %+v", record, want)
		}
	}
	c := &h.Counters
	if up, down, upBytes, downBytes := c.Up.Load(), c.Down.Load(), c.UpBytes.Load(), c.DownBytes.Load(); up != 4 || down != 3 || upBytes != 60_017 || downBytes != 60_007 {
		t.Errorf("%d, %d, %d, %d", up, down, upBytes, downBytes)
	}
}

func TestIPv6(t *testing.T) {
	conn, err := net.ListenUDP("udp6", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		t.Skip("no IPv6 on the loopback interface: ", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	six, four := destination{conn}, listen(t, "127.0.0.1:0")
	h := newRelay(t, Limits{})
	send(t, h, alice, 1, six.addr(), "six")
	send(t, h, alice, 1, four.addr(), "four")
	six.send(t, "answer", six.receive(t, "six"))
	h.receive(t, delivery{alice, 1, six.addr(), "answer"})
	four.send(t, "answer", four.receive(t, "four"))
	h.receive(t, delivery{alice, 1, four.addr(), "answer"})
}

// TestDenied checks that destinations that are not in the allow list, or never
// permitted, get no datagram. No socket is opened for them.
func TestDenied(t *testing.T) {
	h := newRelay(t, Limits{})
	denied := []string{"10.65.0.2:53", "[fd00::1]:53", "224.0.0.251:5353", "0.0.0.0:53", "127.0.0.1:0", "[::]:53", "[::ffff:10.65.0.2]:53"}
	for _, to := range denied {
		if err := h.Send(alice, 1, netip.MustParseAddrPort(to), 0, []byte("x")); !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if err := h.Send(alice, 1, netip.AddrPort{}, 0, nil); !errors.Is(err, ErrDenied) {
		t.Errorf("nowhere: %v", err)
	}
	if n, counted := h.Associations(), h.Counters.Denied.Load(); n != 0 || counted != uint64(len(denied)+1) {
		t.Errorf("%d associations, %d counted", n, counted)
	}
	got := records[noticeRead](t, h, "udp-error")
	if len(got) != len(denied)+1 || got[0] != (noticeRead{Client: "alice", Session: "010000000000", Association: 1, Destination: "10.65.0.2:53", Error: ErrDenied.Error()}) {
		t.Errorf("%+v", got)
	}
	if nobody := New(Options{Deliver: h.options.Deliver}); !errors.Is(nobody.Send(alice, 1, listen(t, "127.0.0.1:0").addr(), 0, nil), ErrDenied) {
		t.Error("the empty allow list permits something")
	}
}

// TestUnsolicited checks that no one reaches a client unsolicited: not another host,
// not another port of a known host.
func TestUnsolicited(t *testing.T) {
	h := newRelay(t, Limits{})
	asked, port, host := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0"), listen(t, "127.0.0.2:0")
	send(t, h, alice, 1, asked.addr(), "question")
	own := asked.receive(t, "question")
	port.send(t, "another port", own)
	host.send(t, "another host", own)
	asked.send(t, "answer", own)
	h.receive(t, delivery{alice, 1, asked.addr(), "answer"})
	if got := h.Counters.Unsolicited.Load(); got != 2 {
		t.Errorf("%d counted", got)
	}
	send(t, h, alice, 1, port.addr(), "now asked")
	port.send(t, "another port", own)
	h.receive(t, delivery{alice, 1, port.addr(), "another port"})
}

// TestLabels checks that an answer has the label of the last datagram to its source.
func TestLabels(t *testing.T) {
	labels := make(chan byte, 10)
	allow, err := config.ParseAllow([]string{"127.0.0.0/8:*"})
	if err != nil {
		t.Fatal(err)
	}
	r := New(Options{Permits: allow.Permits, Deliver: func(_ Client, _ uint32, _ netip.AddrPort, label byte, _ []byte) { labels <- label }})
	defer r.Close()
	first, second := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	var own netip.AddrPort
	for _, step := range []struct {
		to, back destination
		label    byte
		want     byte
	}{{first, first, 7, 7}, {second, first, 9, 7}, {second, second, 9, 9}, {first, first, 200, 200}} {
		if err := r.Send(alice, 1, step.to.addr(), step.label, []byte("x")); err != nil {
			t.Fatal(err)
		}
		own = step.to.receive(t, "x")
		step.back.send(t, "y", own)
		if got := <-labels; got != step.want {
			t.Errorf("%+v: label %d", step, got)
		}
	}
}

func TestLimits(t *testing.T) {
	h := newRelay(t, Limits{Sockets: 3, SocketsPerClient: 2})
	to := listen(t, "127.0.0.1:0").addr()
	other := alice // session of the same client
	other.Session = wire.SessionID{2}
	for _, step := range []struct {
		client      Client
		association uint32
		want        error
	}{
		{alice, 1, nil}, {alice, 2, nil}, {alice, 3, ErrLimit}, {other, 1, ErrLimit}, {bob, 1, nil}, {bob, 2, ErrLimit}, {alice, 1, nil}, {bob, 1, nil},
	} {
		if err := h.Send(step.client, step.association, to, 0, nil); !errors.Is(err, step.want) {
			t.Errorf("%s %d: %v", step.client, step.association, err)
		}
	}
	if got := h.Counters.OverLimit.Load(); got != 3 {
		t.Errorf("%d counted", got)
	}
	h.CloseAssociation(alice, 1)
	h.CloseAssociation(alice, 99)
	send(t, h, alice, 3, to, "")
	h.CloseClient(alice)
	if n := h.Associations(); n != 1 {
		t.Errorf("%d associations", n)
	}
	send(t, h, bob, 2, to, "")
	h.Close()
	status := map[string]int{}
	for _, record := range records[recordRead](t, h, "udp") {
		status[record.Status]++
	}
	if status["closed"] != 3 || status["shutdown"] != 2 {
		t.Errorf("%v", status)
	}
}

// TestDestinationsAreBounded checks that of too many destinations, the one that was
// silent the longest is forgotten.
func TestDestinationsAreBounded(t *testing.T) {
	h := newRelay(t, Limits{Destinations: 2})
	var d [3]destination
	for i := range d {
		d[i] = listen(t, "127.0.0.1:0")
	}
	send(t, h, alice, 1, d[0].addr(), "0")
	send(t, h, alice, 1, d[1].addr(), "1")
	own := d[0].receive(t, "0")
	d[0].send(t, "still known", own)
	h.receive(t, delivery{alice, 1, d[0].addr(), "still known"})
	send(t, h, alice, 1, d[2].addr(), "2")
	d[1].send(t, "forgotten", own)
	d[0].send(t, "0 again", own)
	h.receive(t, delivery{alice, 1, d[0].addr(), "0 again"})
	d[2].send(t, "2 again", own)
	h.receive(t, delivery{alice, 1, d[2].addr(), "2 again"})
	if got := h.Counters.Unsolicited.Load(); got != 1 {
		t.Errorf("%d counted", got)
	}
}

// TestIdle checks that an idle association ends, and starts again when it is used.
func TestIdle(t *testing.T) {
	h := newRelay(t, Limits{Idle: 20 * time.Millisecond})
	to := listen(t, "127.0.0.1:0")
	send(t, h, alice, 1, to.addr(), "one")
	to.receive(t, "one")
	testkit.Eventually(t, "the end of an idle association", func() bool { return h.Associations() == 0 })
	testkit.Eventually(t, "its record", func() bool { return len(records[recordRead](t, h, "udp")) == 1 })
	if got := records[recordRead](t, h, "udp")[0]; got.Status != "timeout" {
		t.Errorf("%+v", got)
	}
	send(t, h, alice, 1, to.addr(), "two")
	to.receive(t, "two")
}

// TestActivityKeepsAnAssociation checks that a read deadline that passes shortly after
// activity ends nothing.
func TestActivityKeepsAnAssociation(t *testing.T) {
	h := newRelay(t, Limits{})
	to := listen(t, "127.0.0.1:0")
	send(t, h, alice, 1, to.addr(), "one")
	own := to.receive(t, "one")
	h.mu.Lock()
	a := h.associations[key{alice, 1}]
	h.mu.Unlock()
	_ = a.socket.SetReadDeadline(time.Unix(1, 0))
	testkit.Eventually(t, "an answer after the deadline", func() bool {
		to.send(t, "answer", own)
		return len(h.back) > 0
	})
}

// TestUnreachable checks that an ICMP error is logged with its destination. It neither
// hides nor ends the traffic with another destination.
func TestUnreachable(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			address := net.JoinHostPort(host, "0")
			if conn, err := net.ListenPacket("udp", address); err != nil {
				t.Skip(err)
			} else {
				conn.Close()
			}
			h := newRelay(t, Limits{})
			closed := listen(t, address)
			closed.Close()
			open := listen(t, address)
			const rounds = 200
			for i := range rounds {
				if err := h.Send(alice, 1, closed.addr(), 0, []byte("anybody?")); err != nil {
					t.Fatal(err)
				}
				text := fmt.Sprint(i)
				send(t, h, alice, 1, open.addr(), text)
				from := open.receive(t, text)
				open.send(t, text, from)
				h.receive(t, delivery{alice, 1, open.addr(), text})
			}
			testkit.Eventually(t, "all errors", func() bool { return h.Counters.Unreachable.Load() == rounds })
			got := records[noticeRead](t, h, "udp-error")
			if len(got) == 0 || got[0] != (noticeRead{Client: "alice", Session: "010000000000", Association: 1, Destination: closed.addr().String(), Error: syscall.ECONNREFUSED.Error()}) {
				t.Errorf("%+v", got)
			}
			if got := h.Counters.Failed.Load(); got != 0 {
				t.Errorf("%d datagrams failed", got)
			}
		})
	}
}

// TestFailedDatagram checks that datagrams that the socket refuses are counted and
// logged.
func TestFailedDatagram(t *testing.T) {
	h := newRelay(t, Limits{})
	to := listen(t, "127.0.0.1:0").addr()
	if err := h.Send(alice, 1, to, 0, bytes.Repeat([]byte("x"), netx.MaxDatagram+1)); !errors.Is(err, syscall.EMSGSIZE) {
		t.Error(err)
	}
	if got := records[noticeRead](t, h, "udp-error"); h.Counters.Failed.Load() != 1 || len(got) != 1 || got[0].Destination != to.String() {
		t.Errorf("%d counted, %+v", h.Counters.Failed.Load(), got)
	}
}

// TestConcurrently sends, answers and ends at the same time: for the race detector and
// for newRelay's checks.
func TestConcurrently(t *testing.T) {
	h := newRelay(t, Limits{Idle: time.Millisecond})
	echo := listen(t, "127.0.0.1:0")
	_ = echo.SetDeadline(time.Time{})
	var echoing, sending sync.WaitGroup
	var sent atomic.Uint64
	echoing.Go(func() {
		buffer := make([]byte, 100)
		for {
			n, from, err := echo.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			_, _ = echo.WriteToUDPAddrPort(buffer[:n], from)
		}
	})
	for i := range 8 {
		client := Client{SessionKey: identity.SessionKey{Client: identity.ID{byte(i / 2)}}}
		sending.Go(func() {
			for n := range 1000 {
				switch err := h.Send(client, uint32(n%5), echo.addr(), 0, []byte("x")); {
				case err == nil:
					sent.Add(1)
				case !errors.Is(err, net.ErrClosed) && !errors.Is(err, netx.ErrWouldWait):
					t.Error(err)
				}
				switch n % 100 {
				case 33:
					h.CloseAssociation(client, uint32(n%5))
				case 66:
					h.CloseClient(client)
				case 99:
					time.Sleep(2 * time.Millisecond)
				}
			}
		})
	}
	sending.Wait()
	testkit.Eventually(t, "idle associations ended", func() bool { return h.Associations() == 0 })
	echo.Close()
	echoing.Wait()
	h.Close()
	up, down := h.Counters.Up.Load(), h.Counters.Down.Load()
	if up != sent.Load() || down != uint64(len(h.back)) {
		t.Errorf("%d up, %d sent; %d down, %d delivered", up, sent.Load(), down, len(h.back))
	}
	for _, record := range records[recordRead](t, h, "udp") {
		up, down = up-record.Up, down-record.Down
	}
	if up != 0 || down != 0 {
		t.Errorf("the records lack %d datagrams up and %d down", up, down)
	}
}

// BenchmarkSend measures the cost of one datagram of 100 bytes to a destination that
// does not answer.
func BenchmarkSend(b *testing.B) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	allow, err := config.ParseAllow([]string{"127.0.0.0/8:*"})
	if err != nil {
		b.Fatal(err)
	}
	r := New(Options{Permits: allow.Permits, Deliver: func(Client, uint32, netip.AddrPort, byte, []byte) {}})
	defer r.Close()
	datagram, to := make([]byte, 100), netx.AddrPort(conn.LocalAddr())
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Send(alice, 1, to, 0, datagram); err != nil {
			b.Fatal(err)
		}
	}
}
