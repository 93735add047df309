package holder

import (
	"context"
	"io"
	"net"
	"sync"
)

// What an application asks of the origin by its first byte.
const (
	Echo  = 'e' // a byte is returned, and then silence
	Flood = 'f' // bytes without end
	Deaf  = 'd' // a byte is returned, and nothing is read any more
)

// Serve serves as the origin until ctx ends: it does what the first byte of each
// connection asks for, and holds the connection. Ready is called when it serves.
func Serve(ctx context.Context, address string, ready func()) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	ready()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return nil // it was closed
		}
		all.Go(func() { hold(ctx, conn) })
	}
}

var zeros [64 << 10]byte

func hold(ctx context.Context, conn net.Conn) {
	defer conn.Close() //nolint:errcheck // nothing is left to lose
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var b [1]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		return
	}
	switch b[0] {
	case Flood:
		for {
			if _, err := conn.Write(zeros[:]); err != nil {
				return
			}
		}
	case Deaf:
		if _, err := conn.Write(b[:]); err == nil {
			<-ctx.Done()
		}
	default:
		if _, err := conn.Write(b[:]); err == nil {
			_, _ = io.ReadFull(conn, b[:])
		}
	}
}
