package labtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Count is what the applications of a direction did.
type Count struct {
	Written  int64 `json:"written"`
	Received int64 `json:"received"`
}

// Pair is a connection with both of its ends.
type Pair struct {
	Client, Server *net.TCPConn
	ClientPort     int
	counts         [2]struct{ written, received atomic.Int64 }
}

// Dial describes a client's connection.
type Dial struct {
	To        netip.AddrPort // not valid: where the listener listens
	From      netip.Addr     // not valid: as the routes say
	Port      uint16         // of the client; 0: any
	Multipath bool
	// ClientBuffer bounds the client's receive buffer, in bytes; 0: as usual.
	ClientBuffer int
}

// connecting bounds how long a connection may take to come about.
const connecting = 15 * time.Second

func listen(address netip.AddrPort, multipath bool) (*net.TCPListener, error) {
	config := net.ListenConfig{Control: reuse}
	config.SetMultipathTCP(multipath)
	l, err := config.Listen(context.Background(), "tcp", address.String())
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// reuse lets a port be used again at once.
func reuse(_, _ string, raw syscall.RawConn) error {
	var err error
	control := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
	return errors.Join(control, err)
}

// DialOnly opens the client's end alone.
func (l *Lab) DialOnly(d Dial) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: connecting, Control: func(network, address string, raw syscall.RawConn) error {
		if d.ClientBuffer > 0 {
			_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, d.ClientBuffer) })
		}
		return reuse(network, address, raw)
	}}
	dialer.SetMultipathTCP(d.Multipath)
	if d.Port != 0 || d.From.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.From, d.Port))
	}
	var c net.Conn
	err := error(nil)
	l.Client.Do(func() { c, err = dialer.Dial("tcp", d.To.String()) })
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// Connect opens a connection and accepts it. One at a time may be opened per listener.
func (l *Lab) Connect(listener *net.TCPListener, d Dial) (*Pair, error) {
	if !d.To.IsValid() {
		d.To = listener.Addr().(*net.TCPAddr).AddrPort()
	}
	client, err := l.DialOnly(d)
	if err != nil {
		return nil, err
	}
	port := client.LocalAddr().(*net.TCPAddr).Port
	_ = listener.SetDeadline(time.Now().Add(connecting))
	for {
		server, err := listener.AcceptTCP()
		if err != nil {
			_ = client.Close()
			return nil, fmt.Errorf("accept from port %d: %w", port, err)
		}
		if server.RemoteAddr().(*net.TCPAddr).Port == port {
			return &Pair{Client: client, Server: server, ClientPort: port}, nil
		}
		_ = server.Close() // of an attempt before, which the client gave up
	}
}

// Counts are what was written and received so far.
func (p *Pair) Counts(direction int) Count {
	return Count{p.counts[direction].written.Load(), p.counts[direction].received.Load()}
}

// Move sends n bytes in a direction and waits until they were received.
func (p *Pair) Move(direction int, n int64) error {
	sent := make(chan error, 1)
	go func() { sent <- p.Write(direction, n) }()
	if err := p.Read(direction, n); err != nil {
		return err
	}
	return <-sent
}

// Exchange moves bytes in both directions at once.
func (p *Pair) Exchange(up, down int64) error {
	done := make(chan error, 1)
	go func() { done <- p.Move(Up, up) }()
	return errors.Join(p.Move(Down, down), <-done)
}

// Write sends n bytes.
func (p *Pair) Write(direction int, n int64) error {
	to := [2]*net.TCPConn{p.Client, p.Server}[direction]
	for chunk := make([]byte, 1<<16); n > 0; {
		wrote, err := to.Write(chunk[:min(n, int64(len(chunk)))])
		p.counts[direction].written.Add(int64(wrote))
		if n -= int64(wrote); err != nil {
			return err
		}
	}
	return nil
}

// Read receives n bytes.
func (p *Pair) Read(direction int, n int64) error {
	from := [2]*net.TCPConn{p.Server, p.Client}[direction]
	for chunk := make([]byte, 1<<16); n > 0; {
		got, err := from.Read(chunk[:min(n, int64(len(chunk)))])
		p.counts[direction].received.Add(int64(got))
		if n -= int64(got); err != nil {
			return err
		}
	}
	return nil
}

// Deadline bounds everything that the pair does from now on.
func (p *Pair) Deadline(d time.Duration) {
	_ = p.Client.SetDeadline(time.Now().Add(d))
	_ = p.Server.SetDeadline(time.Now().Add(d))
}

// Close closes both ends in order: the client says FIN, the server reads to
// the end and says its own, the client reads to the end.
func (p *Pair) Close() error {
	err := p.Client.CloseWrite()
	_, serverErr := io.Copy(io.Discard, p.Server)
	closed := p.Server.Close()
	_, clientErr := io.Copy(io.Discard, p.Client)
	return errors.Join(err, serverErr, closed, clientErr, p.Client.Close())
}

// Abort closes both ends with a reset, the client's first.
func (p *Pair) Abort() {
	for _, c := range []*net.TCPConn{p.Client, p.Server} {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// ErrSubflows means that subflows did not come about in time.
var ErrSubflows = errors.New("subflows did not come about")

// WaitSubflows waits until the server has accepted so many subflows besides
// the first, at most five seconds. (The client counts them when it asks.)
func (p *Pair) WaitSubflows(additional int) error {
	raw, err := p.Server.SyscallConn()
	if err != nil {
		return err
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		found := 0
		if err := raw.Control(func(fd uintptr) { found = subflows(int(fd)) }); err != nil {
			return err
		}
		if found >= additional {
			return nil
		}
	}
	return ErrSubflows
}

// subflows asks MPTCP_INFO (linux/mptcp.h) for the subflows besides the first.
func subflows(fd int) int {
	const solMPTCP, infoMPTCP = 284, 1
	info, err := unix.GetsockoptString(fd, solMPTCP, infoMPTCP)
	if err != nil || info == "" {
		return 0
	}
	return int(info[0])
}
