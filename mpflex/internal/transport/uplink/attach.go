package uplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

// errUnknown reports that the proxy does not have the session.
var errUnknown = fmt.Errorf("%s any more: it was restarted, or the session was over for it", wire.UnknownSession)

// errRecovered reports that the stalled path makes progress again and needs no
// replacement.
var errRecovered = errors.New("the stalled path has recovered")

// ErrNoAnswer reports that the proxy closed the connection without an answer.
var ErrNoAnswer = errors.New("the proxy closed the connection without an answer (another secret)")

// recordOverhead is how many bytes TLS 1.3 adds to a write: header, content type and
// tag of a record (RFC 8446 §5.2).
const recordOverhead = 22

// attach opens a connection on an interface and makes it a path. before is the stalled
// path that it replaces, or nil. If before recovers before the proxy gets the attach,
// attach returns errRecovered.
func (u *Uplink) attach(ctx context.Context, r *run, i int, before *session.Path) (*session.Path, error) {
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	options := u.options.Socket
	options.Device, options.Multipath = u.options.Paths[i].Device, false
	tcp, err := options.Dial(ctx, u.options.Proxy)
	if err != nil {
		return nil, err
	}
	link, binding, err := u.secure(ctx, tcp)
	if err != nil {
		netx.Abort(tcp)
		return nil, err
	}
	if before != nil && !ended(before) && !before.Stalled() {
		netx.Abort(tcp)
		return nil, errRecovered
	}
	stop := context.AfterFunc(ctx, func() { _ = tcp.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	r.numbers[i]++
	link.ID, link.Incarnation, link.Name, link.Backup = uint8(i), r.numbers[i], options.Device, u.options.Paths[i].Backup
	path, err := u.introduce(r, link, binding)
	if err != nil {
		netx.Abort(tcp)
		return nil, err
	}
	return path, nil
}

// secure sets the socket options of a connection, and starts TLS if Options.Private is
// set.
func (u *Uplink) secure(ctx context.Context, tcp *net.TCPConn) (session.Link, wire.Binding, error) {
	if err := session.Prepare(tcp); err != nil {
		return session.Link{}, wire.Unbound, err
	}
	if u.options.Private == nil {
		return session.Link{Conn: tcp, TCP: tcp}, wire.Unbound, nil
	}
	counter := &session.Counter{Conn: tcp}
	private, err := u.options.Private.Handshake(ctx, counter)
	if err != nil {
		return session.Link{}, wire.Unbound, err
	}
	return session.Link{Conn: private, TCP: tcp, Counter: counter, Overhead: recordOverhead}, private.Binding, nil
}

// introduce sends the attach of a connection and reads the answer. If the answer is ok,
// it makes the connection a path.
func (u *Uplink) introduce(r *run, link session.Link, binding wire.Binding) (_ *session.Path, err error) {
	u.mu.Lock()
	fresh := !r.known
	u.mu.Unlock()
	config := r.session.Config()
	message := wire.Attach{
		Session: r.id, Path: link.ID, Incarnation: link.Incarnation, Interface: link.Name, Fresh: fresh, Backup: link.Backup,
		Settings: wire.Settings{
			MaxStreams: uint32(config.MaxStreams), InitialWindow: uint32(config.InitialWindow), KeepAlive: config.Keepalive,
		},
	}
	if u.options.Schemes != nil {
		message.Settings.Schemes = u.options.Schemes()
	}
	message.Stamp()
	message.Time = u.clock.Now()
	b, err := message.Append(nil, u.options.Secret, binding)
	if err != nil {
		return nil, err
	}
	refused := false
	defer func() {
		if err != nil && !refused { // the proxy may have made the connection a path
			r.session.GiveUp(link.ID, link.Incarnation)
		}
	}()
	if _, err := link.Conn.Write(b); err != nil {
		return nil, err
	}
	answer, err := wire.ReadAttached(link.Conn, u.options.Secret, binding, message.Nonce)
	var skew *wire.SkewError
	if errors.As(err, &skew) {
		u.clock.Learn(skew)
	}
	refused = err == nil && answer.Status != wire.OK
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return nil, ErrNoAnswer
	case err != nil:
		return nil, err
	case answer.Status == wire.UnknownSession:
		return nil, errUnknown
	case answer.Status != wire.OK:
		return nil, fmt.Errorf("the proxy accepts no path: %s", answer.Status)
	}
	u.mu.Lock()
	reborn := r.known && r.birth != answer.Birth
	r.known, r.birth = true, answer.Birth
	u.mu.Unlock()
	if reborn { // the proxy was restarted while paths were set up
		return nil, errUnknown
	}
	r.session.SetPeer(session.Peer{InitialWindow: int(answer.Settings.InitialWindow), MaxStreams: int(answer.Settings.MaxStreams)})
	if err := link.TCP.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	u.mu.Lock()
	r.suppressed[link.ID] = u.failures[link.ID].over()
	u.mu.Unlock()
	return r.session.Attach(link)
}
