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

// Protocol is what agent and proxy call themselves in the handshake (ALPN, RFC
// 7301).
const Protocol = "mplab-mpflex/1"

// MinSecret is the size of the shortest secret, in bytes. What an agent sends
// lets who records it try guesses, so a secret is drawn at random.
const MinSecret = 32

// bindingLabel is the label of the exporter (RFC 8446 §7.5) for wire.Binding.
const bindingLabel = "EXPORTER-mplab-mpflex/1 attach"

// Errors of a handshake. What else goes wrong is an error of crypto/tls or of
// the connection.
var (
	// ErrSecret: a secret is shorter than MinSecret.
	ErrSecret = errors.New("the secret is too short")
	// ErrStranger: the peer shows no knowledge of a secret that is known here.
	ErrStranger = errors.New("not a client with a known secret")
	// ErrPeer: the peer does not hold the key that it must hold.
	ErrPeer = errors.New("the peer holds another key")
	// ErrCrowded: too many who did not show a secret yet; the oldest is dropped.
	ErrCrowded = errors.New("dropped for a newer connection before it said who it is")
	// ErrSilent: the proxy closed the connection without a word.
	ErrSilent = errors.New("the proxy closed the connection without an answer: it knows another secret, or is no mpflex proxy")
)

// DefaultTimeout is how long a handshake may take.
const DefaultTimeout = 5 * time.Second

// DefaultMaxStrangers is how many connections may be open at a time that have
// not shown yet that they know a secret.
const DefaultMaxStrangers = 256

// Options of both sides; the zero Options are the defaults.
type Options struct {
	// Timeout bounds the whole handshake; 0: DefaultTimeout.
	Timeout time.Duration
	// DynamicRecords lets crypto/tls begin with short records. Without it a
	// write of up to 16384 bytes is one record.
	DynamicRecords bool
	// MaxStrangers bounds, at the proxy, the connections that have not shown
	// yet that they know a secret; 0: DefaultMaxStrangers. One more closes the
	// oldest of them.
	MaxStrangers int
	// Hellos says that the proxy speaks no TLS: secrets may be shorter than
	// MinSecret then.
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

// ID tells clients apart: the public key of the agent that knows a secret. It
// stays the same as long as the secret does, whatever the client is called.
type ID [ed25519.PublicKeySize]byte

// String is the beginning of the ID, enough for a log.
func (id ID) String() string { return hex.EncodeToString(id[:6]) }

// Client is one who knows a secret that the proxy knows.
type Client struct {
	Name   string // for the log; "" where there is but one
	ID     ID
	Secret []byte // authenticates the messages of package wire

	replay *wire.Replay // of what it sent to the proxy without TLS; nil at an agent
	names  *wire.Memory // that it has shown; nil at an agent
}

// SessionKey is what the proxy keeps its sessions under: a session belongs to
// the client that made it, so what another client asks for under the same
// SessionID is another session.
type SessionKey struct {
	Client  ID
	Session wire.SessionID
}

// Key returns what a session of this client is kept under.
func (c Client) Key(session wire.SessionID) SessionKey { return SessionKey{c.ID, session} }

// Conn is a connection on which both sides have proved to know the secret of
// Client. It is a tls.Conn for all else; a write of up to 16384 bytes is one
// record unless Options.DynamicRecords is set.
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

// base is what the tls.Config of both sides have in common. The peer must hold
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

// verify accepts a connection to the holder of one key. That the peer holds the
// private key to it is for crypto/tls to check.
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
