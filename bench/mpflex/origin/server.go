package origin

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"mplab/internal/netx"
)

// Listener is an address of the origin.
type Listener struct {
	Address    netip.AddrPort `json:"address"`
	Multipath  bool           `json:"multipath"`  // MPTCP; false: plain TCP
	Congestion string         `json:"congestion"` // congestion control of its connections
}

// Serve serves all listeners until ctx ends. It calls ready when all are listening.
func Serve(ctx context.Context, listeners []Listener, ready func()) error {
	var wait sync.WaitGroup
	defer wait.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, l := range listeners {
		socket, err := netx.Options{Multipath: l.Multipath, Congestion: l.Congestion}.Listen(l.Address)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = socket.Close() })
		wait.Go(func() { acceptAll(ctx, &wait, socket) })
	}
	ready()
	<-ctx.Done()
	return nil
}

func acceptAll(ctx context.Context, wait *sync.WaitGroup, socket *net.TCPListener) {
	for {
		conn, err := socket.AcceptTCP()
		if err != nil {
			return // listener closed
		}
		stop := context.AfterFunc(ctx, func() { netx.Abort(conn) })
		wait.Go(func() {
			defer stop()
			if err := answer(conn); err != nil {
				netx.Abort(conn)
				return
			}
			awaitClose(conn)
			_ = conn.Close()
		})
	}
}

// lingering is the maximum wait for the client's close.
const lingering = 10 * time.Second

// awaitClose waits until the client has closed its side.
func awaitClose(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(lingering))
	_, _ = io.Copy(io.Discard, conn)
}

// answer serves the one request of a connection.
func answer(conn net.Conn) error {
	request, err := readMessage(conn)
	if err != nil {
		return err
	}
	switch request.operation {
	case opGet:
		return send(conn, request.size, request.seed)
	case opPut:
		right, err := receive(conn, request.size, request.seed, nil)
		reply := message{answerOK, right, request.seed}
		if err != nil {
			reply.operation = answerBad
		}
		_, err = conn.Write(reply.encode())
		return err
	}
	return fmt.Errorf("unknown operation %q", request.operation)
}
