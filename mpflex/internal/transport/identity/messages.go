package identity

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"mplab/mpflex/wire"
)

// Stranger takes note of a connection without TLS whose first message is still
// to come; beyond Options.MaxStrangers the oldest is closed. leave is called when
// the message was read; it may be called more than once.
func (p *Proxy) Stranger(conn net.Conn) (leave func()) { return p.strangers.enter(conn) }

// ReadHello reads the hello of a connection without TLS, and finds out which
// client it is from. A hello that was seen before, or is not of about now
// (wire.ErrSkew), is refused. A command that is not known is left to the caller.
func (p *Proxy) ReadHello(r io.Reader) (wire.Hello, Client, error) {
	clients := p.Clients()
	hello, which, err := wire.ReadHello(r, secrets(clients)...)
	if err != nil && !errors.Is(err, wire.ErrCommand) {
		return wire.Hello{}, Client{}, crowded(err)
	}
	return hello, clients[which], clients[which].once(hello.Time, hello.Nonce)
}

// ReadAttach reads the attach of a connection with this binding, and finds out
// which client it is from. With TLS it must be from the one that TLS has
// authenticated; without it that is nil, and a message that was seen before, or
// is not of about now (wire.ErrSkew), is refused: the binding of a connection with
// TLS was never there before.
func (p *Proxy) ReadAttach(r io.Reader, binding wire.Binding, authenticated *Client) (wire.Attach, Client, error) {
	clients := p.Clients()
	if authenticated != nil {
		clients = []Client{*authenticated}
	}
	attach, which, err := wire.ReadAttach(r, binding, secrets(clients)...)
	if err != nil {
		return wire.Attach{}, Client{}, crowded(err)
	}
	if authenticated != nil {
		return attach, clients[which], nil
	}
	return attach, clients[which], clients[which].once(attach.Time, attach.Nonce)
}

// Now is the clock by which messages of the client are judged.
func (c *Client) Now() time.Time { return c.replay.Now() }

func secrets(clients []Client) [][]byte {
	all := make([][]byte, len(clients))
	for i := range clients {
		all[i] = clients[i].Secret
	}
	return all
}

// once refuses what the client has sent before.
func (c *Client) once(at time.Time, nonce [wire.NonceSize]byte) error {
	if err := c.replay.Once(at, nonce, c.Now()); err != nil {
		return c.Fault(err)
	}
	return nil
}

// FaultError is an error with the name of the client that caused it.
type FaultError struct {
	Client string
	Err    error
}

// Error implements error.
func (e *FaultError) Error() string { return fmt.Sprintf("client %q: %v", e.Client, e.Err) }

// Unwrap returns the error without the name.
func (e *FaultError) Unwrap() error { return e.Err }

// Fault returns a FaultError of the client, or err if the client has no name.
func (c *Client) Fault(err error) error {
	if c.Name == "" {
		return err
	}
	return &FaultError{c.Name, err}
}

// crowded tells that a connection was closed for a newer one.
func crowded(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return ErrCrowded
	}
	return err
}
