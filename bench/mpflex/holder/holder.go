package holder

import (
	"context"
	"io"
	"net"
	"sync"
)

// Requests of an application, which are its first byte.
const (
	Echo  = 'e' // send one byte, then nothing
	Flood = 'f' // send without end
	Deaf  = 'd' // send one byte, and stop reading
)

// Serve is the origin until ctx ends. It handles the request in the first byte of each connection and keeps the
// connection open. It calls ready when it is listening.
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
			return nil // listener closed
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
