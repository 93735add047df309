package identity

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// Agent opens connections to the proxy that has the same secret.
type Agent struct {
	options     Options
	client      Client
	naming      []byte
	certificate tls.Certificate
	proxy       ed25519.PublicKey
}

// NewAgent returns an agent with a secret of at least MinSecret bytes.
func NewAgent(secret []byte, options Options) (*Agent, error) {
	if err := checkSecret(secret); err != nil {
		return nil, err
	}
	keys, err := derive(secret)
	if err != nil {
		return nil, err
	}
	certificate, err := certify(keys.agent)
	if err != nil {
		return nil, err
	}
	return &Agent{
		options:     options.withDefaults(),
		client:      Client{ID: ID(public(keys.agent)), Secret: secret},
		naming:      keys.naming,
		certificate: certificate,
		proxy:       public(keys.proxy),
	}, nil
}

// Handshake authenticates and encrypts conn. After it, the proxy has proved that it has
// the secret. Whether the proxy accepted the agent is known only from the answer to the
// agent's first message (RFC 8446 §4.4.4). Handshake ends with ctx or after the
// timeout. It returns ErrSilent if the proxy closed the connection without an answer.
// On an error conn is closed.
func (a *Agent) Handshake(ctx context.Context, conn net.Conn) (*Conn, error) {
	secure, err := handshake(ctx, conn, a.options.Timeout, tls.Client(conn, a.config(time.Now())), func() Client { return a.client })
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil, ErrSilent
	}
	return secure, err
}

// config returns the tls.Config of one connection that is opened now.
func (a *Agent) config(now time.Time) *tls.Config {
	config := base(a.options, a.certificate, a.proxy)
	config.ServerName = sealName(a.naming, now)
	// Names and authorities are not used: base's VerifyConnection decides.
	config.InsecureSkipVerify = true
	return config
}

// handshake runs a handshake until it ends or times out. It calls client after a
// success.
func handshake(ctx context.Context, conn net.Conn, timeout time.Duration, secure *tls.Conn, client func() Client) (*Conn, error) {
	err := conn.SetDeadline(time.Now().Add(timeout))
	if err == nil {
		err = secure.HandshakeContext(ctx)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	done, err := newConn(secure, client())
	if err != nil {
		_ = conn.Close()
	}
	return done, err
}
