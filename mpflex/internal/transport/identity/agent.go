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

// Agent opens connections to the proxy that knows the same secret.
type Agent struct {
	options     Options
	client      Client
	naming      []byte
	certificate tls.Certificate
	proxy       ed25519.PublicKey
}

// NewAgent returns the agent that holds a secret of at least MinSecret bytes.
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

// Handshake makes conn private. When it returns, the proxy has proved to know
// the secret; whether the proxy has accepted the agent the agent learns from
// the answer to its first message (RFC 8446 §4.4.4). It ends with ctx or after
// the timeout. On an error conn is closed.
func (a *Agent) Handshake(ctx context.Context, conn net.Conn) (*Conn, error) {
	secure, err := handshake(ctx, conn, a.options.Timeout, tls.Client(conn, a.config(time.Now())), func() Client { return a.client })
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil, ErrSilent
	}
	return secure, err
}

// config returns the tls.Config for one connection, opened now.
func (a *Agent) config(now time.Time) *tls.Config {
	config := base(a.options, a.certificate, a.proxy)
	config.ServerName = sealName(a.naming, now)
	// Names and authorities say nothing here: base's VerifyConnection judges.
	config.InsecureSkipVerify = true
	return config
}

// handshake runs a handshake to its end or its timeout. The client is asked for
// when it has succeeded.
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
