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

// Count is the number of bytes that the applications of a direction wrote and
// received.
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
	To        netip.AddrPort // invalid: the address of the listener
	From      netip.Addr     // invalid: chosen by the routing
	Port      uint16         // client port; 0: any
	Multipath bool
	// ClientBuffer is the size of the client's receive buffer in bytes; 0:
	// system default.
	ClientBuffer int
}

// connecting is the timeout of a connection attempt.
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

// reuse allows a port to be reused immediately.
func reuse(_, _ string, raw syscall.RawConn) error {
	var err error
	control := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
	return errors.Join(control, err)
}

// DialOnly opens only the client's end.
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

// Connect opens a connection and accepts it. Use it for one connection at a
// time per listener.
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
		_ = server.Close() // from an earlier attempt that the client gave up
	}
}

// Counts returns the numbers of bytes written and received so far.
func (p *Pair) Counts(direction int) Count {
	return Count{p.counts[direction].written.Load(), p.counts[direction].received.Load()}
}

// Move sends n bytes in a direction and waits until they are received.
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

// Deadline sets the deadline of both ends, d from now.
func (p *Pair) Deadline(d time.Duration) {
	_ = p.Client.SetDeadline(time.Now().Add(d))
	_ = p.Server.SetDeadline(time.Now().Add(d))
}

// Close closes both ends in order: the client sends FIN, the server reads to
// the end and sends its FIN, and the client reads to the end.
func (p *Pair) Close() error {
	err := p.Client.CloseWrite()
	_, serverErr := io.Copy(io.Discard, p.Server)
	closed := p.Server.Close()
	_, clientErr := io.Copy(io.Discard, p.Client)
	return errors.Join(err, serverErr, closed, clientErr, p.Client.Close())
}

// Abort closes both ends with a reset, the client first.
func (p *Pair) Abort() {
	for _, c := range []*net.TCPConn{p.Client, p.Server} {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// ErrSubflows means that subflows were not established in time.
var ErrSubflows = errors.New("subflows did not come about")

// WaitSubflows waits at most 5 s until the server has accepted the given number
// of additional subflows. (The client already counts a subflow when it requests
// it.)
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

// subflows returns the number of additional subflows, from MPTCP_INFO
// (linux/mptcp.h).
func subflows(fd int) int {
	const solMPTCP, infoMPTCP = 284, 1
	info, err := unix.GetsockoptString(fd, solMPTCP, infoMPTCP)
	if err != nil || info == "" {
		return 0
	}
	return int(info[0])
}
