package session

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
)

// calls records the sizes of the writes to TCP.
type calls struct {
	*net.TCPConn
	sizes []int
}

// Write implements net.Conn.
func (c *calls) Write(b []byte) (int, error) {
	c.sizes = append(c.sizes, len(b))
	return c.TCPConn.Write(b)
}

// private starts TLS on both ends of a connection, as agent and proxy do, but without
// checking identities.
func private(t testing.TB, a, b net.Conn) (agent, proxy *tls.Conn) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(nil, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, DynamicRecordSizingDisabled: true, SessionTicketsDisabled: true,
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
	}
	agent, proxy = tls.Client(a, config), tls.Server(b, config)
	done := make(chan error, 1)
	go func() { done <- proxy.Handshake() }()
	if err := errors.Join(agent.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	return agent, proxy
}

// TestRecordsReachTCPTogether checks that the records of a batch are full and reach TCP
// in few calls. Writes outside batches are not held back.
func TestRecordsReachTCPTogether(t *testing.T) {
	a, b := link(t)
	tcp := &calls{TCPConn: a}
	counter := &Counter{Conn: tcp}
	agent, proxy := private(t, counter, b)
	defer agent.Close()
	defer proxy.Close()
	sent := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(sent)
	counter.begin()
	const overhead = 22 // of a record, RFC 8446 §5.2
	for _, c := range []struct {
		from, to int
		want     []int
	}{
		{0, 1000, []int{1000 + overhead}},
		{1000, 51_000, []int{50_000 + 4*overhead}},
		{51_000, 300_000, []int{7 * (recordSize + overhead), 7 * (recordSize + overhead), 249_000 - 14*recordSize + 2*overhead}},
	} {
		tcp.sizes = nil
		var batch batch
		for rest := sent[c.from:c.to]; len(rest) > 0; { // in pieces smaller than a record
			n := min(len(rest), 1436)
			batch.bytes = append(batch.bytes, rest[:n])
			rest = rest[n:]
		}
		written := make(chan error, 1)
		before := counter.total()
		go func() { written <- batch.encrypt(agent, counter) }()
		got := make([]byte, c.to-c.from)
		if _, err := io.ReadFull(proxy, got); err != nil || !bytes.Equal(got, sent[c.from:c.to]) {
			t.Fatalf("other bytes arrive, %v", err)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, size := range tcp.sizes {
			sum += size
		}
		if counted := counter.total() - before; int(counted) != sum {
			t.Errorf("%d bytes are counted of %d", counted, sum)
		}
		if !slices.Equal(tcp.sizes, c.want) {
			t.Errorf("%d bytes: TCP is given %v, want %v", c.to-c.from, tcp.sizes, c.want)
		}
	}
	tcp.sizes = nil
	if _, err := agent.Write([]byte("go")); err != nil || !slices.Equal(tcp.sizes, []int{2 + overhead}) {
		t.Errorf("beside a batch TCP is given %v, %v", tcp.sizes, err)
	}
}
