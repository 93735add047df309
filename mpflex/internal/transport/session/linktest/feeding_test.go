package linktest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/internal/transport/session"
)

// TestFeeding: with late binding, TCP holds only bytes that it can send. Otherwise it
// holds the configured number, and a scheduler that looks only at room fills the
// quicker path completely. In both cases all bytes arrive, over both paths.
func TestFeeding(t *testing.T) {
	const size, buffer, late = 1 << 20, 200 << 10, 16 << 10
	r := start(t, "txdelay")
	want := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(want)
	for _, scheduler := range []string{"minrtt", "txdelay", "earliest"} {
		for _, sendBuffer := range []int{0, buffer} {
			t.Run(fmt.Sprintf("%s, %d", scheduler, sendBuffer), func(t *testing.T) {
				k := attach(t, r, session.Config{Scheduler: scheduler, SendBuffer: sendBuffer})
				most := watchQueues(t, k.paths, func() { k.fetch(t, want) })
				status := k.proxy.Status()
				for i, m := range most {
					out := status.Paths[i].BytesOut
					t.Logf("%s: %d bytes, at most %d unsent, %d unacknowledged", status.Paths[i].Name, out, m.Unsent, m.Unacked)
					switch {
					case out < size/20:
						t.Errorf("%s carried %d bytes", status.Paths[i].Name, out)
					case sendBuffer == 0 && m.Unsent > late:
						t.Errorf("%s, bound late: %d bytes were unsent", status.Paths[i].Name, m.Unsent)
					case sendBuffer > 0 && m.Unacked > max(sendBuffer, m.Unacked-m.Unsent)+late:
						t.Errorf("%s: %d bytes were committed", status.Paths[i].Name, m.Unacked)
					}
				}
				if sendBuffer > 0 && scheduler == "minrtt" && most[0].Unsent < sendBuffer/2 {
					t.Errorf("%d bytes of %d were unsent at most", most[0].Unsent, sendBuffer)
				}
			})
		}
	}
}

// fetch lets the agent request bytes and compares them.
func (k *pair) fetch(t *testing.T, want []byte) {
	t.Helper()
	st, err := k.agent.Open()
	if err != nil {
		t.Fatal(err)
	}
	_ = st.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := st.Write([]byte("GET")); err != nil {
		t.Fatal(err)
	}
	if err := st.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	other, err := k.proxy.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := io.Copy(other, bytes.NewReader(want))
		if err == nil {
			_, _ = io.Copy(io.Discard, other)
			err = other.Close()
		}
		answered <- err
	}()
	got, err := io.ReadAll(st)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	_ = st.Close()
}

// watchQueues returns the maximum queue of each connection in the kernel during do.
func watchQueues(t *testing.T, conns []*net.TCPConn, do func()) []netx.State {
	t.Helper()
	gauges, most := make([]*netx.Gauge, len(conns)), make([]netx.State, len(conns))
	for i, conn := range conns {
		var err error
		if gauges[i], err = netx.NewGauge(conn); err != nil {
			t.Fatal(err)
		}
	}
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			for i, g := range gauges {
				if now, err := g.Read(); err == nil && now.Unsent >= most[i].Unsent {
					most[i] = now
				}
			}
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	do()
	close(done)
	<-stopped
	return most
}
