package proxy_test

import (
	"io"
	"net"
	"testing"
	"time"

	"mplab/internal/jsonlog"
	"mplab/internal/testkit"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/transport/frame"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

// peer starts session number n of a client and returns its path.
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

// data returns a frame with bytes of a stream.
func data(stream, seq uint32, payload []byte) []byte {
	return append(frame.Header{Type: frame.Data, Size: uint16(len(payload)), Stream: stream, Seq: seq}.Append(nil), payload...)
}

// TestOneClientLeavesMemoryToOthers: a client fills four sessions with bytes that
// cannot be read. Another client can still open streams.
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
			for i := range uint32(600) { // behind a gap of one byte
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

// TestStreamThatSaysNothing: a stream without an open message is reset soon.
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

// TestRecordsOfAClientAreBounded: endless tables of schemes and streams without bytes
// do not fill the log, over any number of sessions. Suppressed records are counted.
func TestRecordsOfAClientAreBounded(t *testing.T) {
	const each = 100
	p := start(t, nil, "alice")
	table := wire.Open{Command: wire.Schemes}.Append(nil)
	for n := range byte(3) {
		conn := p.peer(t, "alice", n)
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		for i := range uint32(each) {
			end := append(frame.Header{Type: frame.Data, Flags: frame.Fin, Size: uint16(len(table)), Stream: 4*i + 1}.Append(nil), table...)
			if _, err := conn.Write(append(end, data(4*i+3, 0, []byte("no stream begins like this"))...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	testkit.Eventually(t, "all records", func() bool {
		time.Sleep(2 * jsonlog.ThrottlePause)
		written := [2]uint64{}
		conn := p.peer(t, "alice", 4) // the next record has the number of suppressed ones
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		_, _ = conn.Write(data(1, 0, []byte("no stream begins like this")))
		_, _ = conn.Write(append(frame.Header{Type: frame.Data, Flags: frame.Fin, Size: uint16(len(table)), Stream: 3}.Append(nil), table...))
		time.Sleep(jsonlog.ThrottlePause)
		for _, r := range records[connlog.Connection](t, p, "connection") {
			written[0] += 1 + r.Suppressed
		}
		for _, r := range records[connlog.Schemes](t, p, "schemes") {
			written[1] += 1 + r.Suppressed
		}
		return min(written[0], written[1]) >= 3*each
	})
	connections, schemes := records[connlog.Connection](t, p, "connection"), records[connlog.Schemes](t, p, "schemes")
	if most := 3 * each / 2; len(connections) > most || len(schemes) > most {
		t.Errorf("%d records of connections and %d of schemes", len(connections), len(schemes))
	}
}
