package identity

import (
	"crypto/ed25519"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"mplab/mpflex/wire"
)

// Protocol is the protocol name in the handshake (ALPN, RFC 7301).
const Protocol = "mplab-mpflex/1"

// MinSecret is the minimum size of a secret in bytes. An observer can test guesses
// against the recorded bytes of an agent, so secrets must be random.
const MinSecret = 32

// bindingLabel is the label of the exporter (RFC 8446 §7.5) for wire.Binding.
const bindingLabel = "EXPORTER-mplab-mpflex/1 attach"

// Errors of a handshake. Other failures are errors of crypto/tls or of the connection.
var (
	// ErrSecret reports a secret shorter than MinSecret.
	ErrSecret = errors.New("the secret is too short")
	// ErrStranger reports a peer that did not prove that it has a known secret.
	ErrStranger = errors.New("not a client with a known secret")
	// ErrPeer reports a peer with a wrong key.
	ErrPeer = errors.New("the peer holds another key")
	// ErrCrowded reports a connection that was closed because there were too many
	// without a proof.
	ErrCrowded = errors.New("dropped for a newer connection before it authenticated")
	// ErrSilent reports that the proxy closed the connection without an answer.
	ErrSilent = errors.New("the proxy closed the connection without an answer: it knows another secret, or is no mpflex proxy")
)

// DefaultTimeout is the maximum duration of a handshake.
const DefaultTimeout = 5 * time.Second

// DefaultMaxStrangers is the maximum number of open connections that have not yet
// proved that they have a secret.
const DefaultMaxStrangers = 256

// Options are the options of both sides. A zero value selects the default.
type Options struct {
	// Timeout bounds the whole handshake; 0: DefaultTimeout.
	Timeout time.Duration
	// DynamicRecords lets crypto/tls start with short records. Without it, a write of
	// up to 16384 bytes is one record.
	DynamicRecords bool
	// MaxStrangers bounds, at the proxy, the connections that have not yet proved that
	// they have a secret; 0: DefaultMaxStrangers. A further one closes the oldest.
	MaxStrangers int
	// Hellos means that the proxy does not use TLS. Secrets may then be shorter than
	// MinSecret.
	Hellos bool
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxStrangers == 0 {
		o.MaxStrangers = DefaultMaxStrangers
	}
	return o
}

// ID identifies a client: the public key of the agent that has the secret. It changes
// only with the secret, not with the client's name.
type ID [ed25519.PublicKeySize]byte

// String returns the first 6 bytes of the ID in hexadecimal, for logs.
func (id ID) String() string { return hex.EncodeToString(id[:6]) }

// Client is a holder of a secret that the proxy has, too.
type Client struct {
	Name   string // for logs; "" if there is only one client
	ID     ID
	Secret []byte // authenticates the messages of package wire

	replay *wire.Replay // of its messages without TLS; nil at an agent
	names  *wire.Memory // nonces of its server names; nil at an agent
}

// SessionKey is the key under which the proxy stores a session. A session belongs to
// the client that made it: the same SessionID of another client is another session.
type SessionKey struct {
	Client  ID
	Session wire.SessionID
}

// Key returns the key of a session of this client.
func (c Client) Key(session wire.SessionID) SessionKey { return SessionKey{c.ID, session} }

// Conn is a connection on which both sides have proved that they have the secret of
// Client. A write of up to 16384 bytes is one record unless Options.DynamicRecords is
// set.
type Conn struct {
	*tls.Conn
	Client Client
	// Binding ties messages to this connection.
	Binding wire.Binding
}

func newConn(conn *tls.Conn, client Client) (*Conn, error) {
	state := conn.ConnectionState()
	material, err := state.ExportKeyingMaterial(bindingLabel, nil, wire.BindingSize)
	if err != nil {
		return nil, fmt.Errorf("exporting the binding: %w", err)
	}
	return &Conn{conn, client, wire.Binding(material)}, nil
}

// base returns the parts of the tls.Config that both sides share. The peer must have
// the key peer.
func base(options Options, certificate tls.Certificate, peer ed25519.PublicKey) *tls.Config {
	return &tls.Config{
		Certificates:                []tls.Certificate{certificate},
		NextProtos:                  []string{Protocol},
		MinVersion:                  tls.VersionTLS13,
		MaxVersion:                  tls.VersionTLS13,
		CurvePreferences:            []tls.CurveID{tls.X25519MLKEM768, tls.X25519},
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: !options.DynamicRecords,
		VerifyConnection:            func(state tls.ConnectionState) error { return verify(state, peer) },
	}
}

// verify accepts a connection to the holder of one key. crypto/tls checks that the peer
// has the private key.
func verify(state tls.ConnectionState, peer ed25519.PublicKey) error {
	switch {
	case state.Version != tls.VersionTLS13:
		return fmt.Errorf("%s instead of TLS 1.3", tls.VersionName(state.Version))
	case state.NegotiatedProtocol != Protocol:
		return fmt.Errorf("the peer speaks %q, not %q", state.NegotiatedProtocol, Protocol)
	case state.DidResume:
		return errors.New("a resumed TLS session")
	case len(state.PeerCertificates) != 1:
		return fmt.Errorf("%w: %d certificates", ErrPeer, len(state.PeerCertificates))
	}
	if key, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey); !ok || !key.Equal(peer) {
		return ErrPeer
	}
	return nil
}
