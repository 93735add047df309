package muxed

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/hashicorp/yamux"

	"mplab/internal/netx"
)

// Client is the part on the phone. It has one session with the server, and opens another one when that ends.
type Client struct {
	// Destination returns the original destination of an accepted connection. It is netx.OriginalDestination unless a
	// test replaces it.
	Destination func(*net.TCPConn) (netip.AddrPort, error)

	config   Config
	listener *net.TCPListener

	mu      sync.Mutex
	session *yamux.Session // guarded by mu
}

// NewClient listens and opens the session.
func NewClient(ctx context.Context, c Config) (*Client, error) {
	listener, err := netx.Options{}.Listen(c.Listen)
	if err != nil {
		return nil, err
	}
	client := &Client{Destination: netx.OriginalDestination, config: c, listener: listener}
	if _, err := client.open(ctx); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return client, nil
}

// Listening returns the address of the listener.
func (c *Client) Listening() netip.AddrPort { return netx.AddrPort(c.listener.Addr()) }

// Run serves until ctx ends.
func (c *Client) Run(ctx context.Context) {
	var wait sync.WaitGroup
	defer wait.Wait()
	stop := context.AfterFunc(ctx, func() {
		_ = c.listener.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = c.session.Close()
	})
	defer stop()
	for {
		app, err := c.listener.AcceptTCP()
		if err != nil {
			return // listener closed
		}
		end := context.AfterFunc(ctx, func() { netx.Abort(app) })
		wait.Go(func() {
			defer end()
			if err := c.serve(ctx, app); err != nil {
				netx.Abort(app)
			}
		})
	}
}

// serve relays one connection of an application. The destination and the application's first bytes are one write, so
// opening a stream costs no round trip and no extra packet.
func (c *Client) serve(ctx context.Context, app *net.TCPConn) error {
	destination, err := c.Destination(app)
	if err != nil {
		return err
	}
	first, err := destination.MarshalBinary()
	if err != nil {
		return err
	}
	if len(first) != headerSize {
		return fmt.Errorf("%s: only IPv4 is served", destination)
	}
	first = append(first, make([]byte, bufferSize)...)
	n, err := app.Read(first[headerSize:])
	if err != nil {
		return err
	}
	session, err := c.open(ctx)
	if err != nil {
		return err
	}
	stream, err := session.OpenStream()
	if err != nil {
		return err
	}
	if _, err := stream.Write(first[:headerSize+n]); err != nil {
		_ = stream.Close()
		return err
	}
	join(app, stream)
	return nil
}

// open returns the session, and opens a new one if it has ended.
func (c *Client) open(ctx context.Context) (*yamux.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil && !c.session.IsClosed() {
		return c.session, nil
	}
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	conn, err := c.config.options().Dial(ctx, c.config.Server)
	if err != nil {
		return nil, err
	}
	private, err := c.config.secureClient(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	opened, err := yamux.Client(private, session())
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.session = opened
	return opened, nil
}
