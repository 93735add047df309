package proxy_test

import (
	"io"
	"net"
	"testing"
	"time"

	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/frame"
	"mplab/mpflex/session"
	"mplab/mpflex/testkit"
	"mplab/mpflex/wire"
)

// peer begins session number n of a client, and returns its path.
func (r running) peer(t *testing.T, name string, n byte) net.Conn {
	t.Helper()
	a := wire.Attach{Session: wire.SessionID{n, 1}, Fresh: true}
	conn, binding, err := r.introduce(config.MPFlex, secretOf(name), secretOf(name), &a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if answer, err := wire.ReadAttached(conn, secretOf(name), binding, a.Nonce); err != nil || answer.Status != wire.OK {
		t.Fatal(answer.Status, err)
	}
	return conn
}

// data is a frame with bytes of a stream.
func data(stream, seq uint32, payload []byte) []byte {
	return append(frame.Header{Type: frame.Data, Size: uint16(len(payload)), Stream: stream, Seq: seq}.Append(nil), payload...)
}

// TestOneClientLeavesMemoryToOthers: a client fills four sessions with bytes that
// nobody can read. Another client opens streams as before.
func TestOneClientLeavesMemoryToOthers(t *testing.T) {
	const budget = 64 << 20
	echo := testkit.Echo(t)
	p := start(t, func(c *config.Proxy) { c.Session.BudgetBytes = budget }, "hoarder", "other")
	other := p.dialer(t, secretOf("other"), config.MPFlex)
	if err := exchange(other, echo, 1000); err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, 60_000)
	for n := range byte(4) {
		conn := p.peer(t, "hoarder", n)
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		go func() {
			for i := range uint32(600) { // behind a gap of a byte
				if _, err := conn.Write(data(2*i+1, 1, payload)); err != nil {
					return
				}
			}
		}()
	}
	hoarded := func() (sum int64) {
		for _, s := range p.Status().Streams().Sessions {
			if s.Client == "hoarder" {
				sum += s.Memory
			}
		}
		return sum
	}
	testkit.Eventually(t, "the hoarder fills its share", func() bool { return hoarded() > budget/4 })
	for range 20 {
		if err := exchange(other, echo, 1000); err != nil {
			t.Errorf("another client: %v", err)
		}
	}
	if n := hoarded(); n > budget/2 {
		t.Errorf("the hoarder holds %d bytes of %d", n, budget)
	}
	for _, m := range records[connlog.Memory](t, p, "memory") {
		if m.Client != "hoarder" || m.Share > budget/2 {
			t.Errorf("%+v", m)
		}
	}
}

// TestStreamThatSaysNothing: a stream that does not say what it is for is reset
// soon.
func TestStreamThatSaysNothing(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "alice")
	conn := p.peer(t, "alice", 1)
	if _, err := conn.Write(data(1, 0, []byte{1})); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(40 * time.Second))
	for {
		var b [frame.HeaderSize]byte
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			t.Fatal(err)
		}
		h, err := frame.Parse(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(h.Size)); err != nil {
			t.Fatal(err)
		}
		if h.Type == frame.Reset && h.Stream == 1 && session.Reason(h.Seq) == session.Aborted {
			return
		}
	}
}
