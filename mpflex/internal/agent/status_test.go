package agent_test

import (
	"io"
	"testing"

	"mplab/internal/testkit"
	"mplab/mpflex/config"
)

// TestStatusWithoutSession: with separate carrying connections, the status has the
// transport and the open connections.
func TestStatusWithoutSession(t *testing.T) {
	echo := testkit.Echo(t).String()
	l := newLab(t, echo, nil)
	if r := l.status.Streams(); r.Role != "agent" || r.Transport != config.TCP || r.Sessions == nil || len(r.Sessions) != 0 ||
		r.Connections.Open != 0 || r.OwnConnections == nil {
		t.Errorf("at first: %+v", r)
	}
	conn := l.dial(t)
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	r := l.status.Streams()
	if r.Connections.Open != 1 || r.Connections.Ended != 0 || len(r.OwnConnections) != 1 {
		t.Fatalf("with one connection: %+v", r)
	}
	if c := r.OwnConnections[0]; c.ID != 1 || c.Transport != config.TCP || c.Src.String() != conn.LocalAddr().String() || c.Dst.String() != echo || c.AgeS < 0 {
		t.Errorf("%+v", c)
	}
	if short := l.status.Status(); short.OwnConnections != nil || short.Connections.Open != 1 {
		t.Errorf("status: %+v", short)
	}
	if paths := l.status.Paths(); paths.Sessions == nil || len(paths.Sessions) != 0 {
		t.Errorf("paths: %+v", paths)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the end of the connection", func() bool { return l.status.Status().Connections.Open == 0 })
	if c := l.status.Streams().Connections; c.Ended != 1 || c.BytesUp != 5 || c.BytesDown != 5 {
		t.Errorf("%+v", c)
	}
}
