package identity

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"mplab/mpflex/wire"
)

// Stranger registers a connection without TLS whose first message has not arrived.
// Beyond Options.MaxStrangers, the oldest one is closed. Call leave when the message
// was read. It may be called more than once.
func (p *Proxy) Stranger(conn net.Conn) (leave func()) { return p.strangers.enter(conn) }

// ReadHello reads the hello of a connection without TLS and identifies its client. It
// refuses a hello that was seen before, and one whose time is wrong (wire.ErrSkew). A
// hello with an unknown command is returned without an error: the caller must check it.
func (p *Proxy) ReadHello(r io.Reader) (wire.Hello, Client, error) {
	clients := p.Clients()
	hello, which, err := wire.ReadHello(r, secrets(clients)...)
	if err != nil && !errors.Is(err, wire.ErrCommand) {
		return wire.Hello{}, Client{}, crowded(err)
	}
	return hello, clients[which], clients[which].once(hello.Time, hello.Nonce)
}

// ReadAttach reads the attach of a connection with this binding and identifies its
// client. With TLS, the client must be the authenticated one. Without TLS,
// authenticated is nil, and ReadAttach refuses an attach that was seen before or whose
// time is wrong (wire.ErrSkew). With TLS the binding is unique, so these checks are not
// needed.
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

// Now returns the time against which messages of the client are checked.
func (c *Client) Now() time.Time { return c.replay.Now() }

func secrets(clients []Client) [][]byte {
	all := make([][]byte, len(clients))
	for i := range clients {
		all[i] = clients[i].Secret
	}
	return all
}

// once refuses a message that the client has sent before.
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

// crowded returns ErrCrowded if the connection was closed for a newer one.
func crowded(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return ErrCrowded
	}
	return err
}
