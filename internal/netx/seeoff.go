package netx

import (
	"context"
	"io"
	"net"
	"time"
)

// drainTimeout is how long a connection is kept open after a failure answer, so
// that a reset does not overtake the answer (RFC 1928 §6: at most 10 s).
const drainTimeout = time.Second

// SeeOff sends the last message of a connection and closes it in order.
func SeeOff(ctx context.Context, conn *net.TCPConn, message []byte) {
	_ = conn.SetDeadline(time.Now().Add(drainTimeout))
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := conn.Write(message); err != nil {
		return
	}
	// Closing a socket with unread bytes would reset the connection.
	_ = conn.CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}
