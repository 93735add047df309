package wire

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// AttachPath requests that the connection becomes a path of a session.
const AttachPath Command = 3

// Sizes in bytes.
const (
	SessionSize  = 16
	BindingSize  = 32
	BirthSize    = 8
	MaxInterface = 15 // of an interface's name (IFNAMSIZ - 1)

	attachFixed = fixedSize + SessionSize + 1 + 1 + 4 + 1 // up to the interface's name
	minAttach   = attachFixed + settingsSize + macSize
	maxAttach   = minAttach + MaxInterface + MaxSchemes
)

const (
	flagFresh  = 1
	flagBackup = 2
)

// SessionID is the number of a session. The agent draws it at random.
type SessionID [SessionSize]byte

// String returns the first 6 bytes of the number in hexadecimal, for logs.
func (id SessionID) String() string { return hex.EncodeToString(id[:6]) }

// Binding ties a message to its TLS connection. It is 32 bytes of exported keying
// material (RFC 8446 §7.5). Without TLS it is Unbound.
type Binding [BindingSize]byte

// Unbound is the binding of a connection without TLS.
var Unbound Binding

// Attach is the first message of a path, agent to proxy.
//
// The proxy looks the session up only among those of the client that authenticated the
// connection. The sessions of another client do not exist for it.
type Attach struct {
	Time    time.Time // to the millisecond
	Nonce   [NonceSize]byte
	Session SessionID
	// Path is the number of the path in the session, one for each interface.
	Path uint8
	// Incarnation counts the connections of the path. A higher one replaces the path's
	// connection at the proxy.
	Incarnation uint32
	// Interface is the name of the agent's interface, for the proxy's log; "" if the
	// connection is not bound to one.
	Interface string
	// Fresh permits the proxy to make the session if it does not exist. Without it, the
	// answer is then UnknownSession.
	Fresh bool
	// Backup means that the path is used only while no other path can be used. It
	// applies to streams whose scheme has no list of paths.
	Backup   bool
	Settings Settings
}

// MaxPaths is the maximum number of paths of a session. They are numbered from 0.
const MaxPaths = 64

// Stamp sets the current time and a new nonce. An attach must be sent only once.
func (a *Attach) Stamp() {
	a.Time = time.Now()
	_, _ = rand.Read(a.Nonce[:]) // never fails: crypto/rand ends the program instead
}

// Append appends the encoded attach to b, authenticated for the connection with this
// binding. It fails with ErrFormat if a field is out of bounds.
func (a Attach) Append(b, secret []byte, binding Binding) ([]byte, error) {
	if err := a.check(); err != nil {
		return b, err
	}
	start := len(b)
	b = appendHeader(b, byte(AttachPath), minAttach+len(a.Interface)+len(a.Settings.Schemes))
	b = binary.BigEndian.AppendUint64(b, uint64(a.Time.UnixMilli()))
	b = append(b, a.Nonce[:]...)
	b = append(b, a.Session[:]...)
	flags := byte(0)
	if a.Fresh {
		flags |= flagFresh
	}
	if a.Backup {
		flags |= flagBackup
	}
	b = append(b, a.Path, flags)
	b = binary.BigEndian.AppendUint32(b, a.Incarnation)
	b = append(b, byte(len(a.Interface)))
	b = append(b, a.Interface...)
	b = a.Settings.append(b)
	return append(b, mac(secret, attachLabel, binding[:], b[start:])...), nil
}

func (a Attach) check() error {
	if err := checkInterface(a.Interface); err != nil {
		return err
	}
	return a.Settings.check()
}

// ReadAttach reads one attach and no further byte, and authenticates it for the
// connection with this binding. which is the index of the secret that authenticated it.
// With TLS, pass only the secret of the client. ReadAttach does not check time and
// nonce: Replay does.
func ReadAttach(r io.Reader, binding Binding, secrets ...[]byte) (attach Attach, which int, err error) {
	message, err := readMessage(r, "attach", minAttach, maxAttach)
	if err != nil {
		return Attach{}, 0, err
	}
	signed, tag := message[:len(message)-macSize], message[len(message)-macSize:]
	for which, secret := range secrets {
		if hmac.Equal(tag, mac(secret, attachLabel, binding[:], signed)) {
			attach, err := parseAttach(signed)
			return attach, which, err
		}
	}
	return Attach{}, 0, ErrMAC
}

func parseAttach(signed []byte) (Attach, error) {
	if command := Command(signed[5]); command != AttachPath {
		return Attach{}, fmt.Errorf("%w: %d instead of an attach", ErrCommand, command)
	}
	b := signed[fixedSize:]
	attach := Attach{
		Time:        time.UnixMilli(int64(binary.BigEndian.Uint64(signed[headerSize:]))),
		Nonce:       [NonceSize]byte(signed[headerSize+8:]),
		Session:     SessionID(b),
		Path:        b[16],
		Fresh:       b[17]&flagFresh != 0,
		Backup:      b[17]&flagBackup != 0,
		Incarnation: binary.BigEndian.Uint32(b[18:]),
	}
	if flags := b[17]; flags&^(flagFresh|flagBackup) != 0 {
		return Attach{}, fmt.Errorf("%w: flags %#x", ErrFormat, flags)
	}
	n, b := int(b[22]), b[23:]
	if n > len(b) {
		return Attach{}, fmt.Errorf("%w: interface name cut short", ErrFormat)
	}
	attach.Interface = string(b[:n])
	if err := checkInterface(attach.Interface); err != nil {
		return Attach{}, err
	}
	var err error
	if attach.Settings, err = parseSettings(b[n:]); err != nil {
		return Attach{}, err
	}
	return attach, nil
}

// checkInterface returns ErrFormat if a text cannot be an interface's name or would
// disturb a log.
func checkInterface(name string) error {
	if len(name) > MaxInterface {
		return fmt.Errorf("%w: an interface name of %d bytes", ErrFormat, len(name))
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c > '~' || c == '/' {
			return fmt.Errorf("%w: interface name %q", ErrFormat, name)
		}
	}
	return nil
}

// Attached is the proxy's answer to an attach.
type Attached struct {
	Status Status
	// Birth is drawn at random when the proxy makes a session. It is the same in all
	// answers of that session. If it differs from that of an earlier answer, the
	// session that the agent knew is lost. With a status other than OK it is zero.
	Birth [BirthSize]byte
	// Settings are the proxy's. With a status other than OK they are not sent.
	Settings Settings
}

// Append appends the encoded answer to b, authenticated for the attach with this nonce
// on the connection with this binding. It fails with ErrFormat if a setting is out of
// bounds.
func (a Attached) Append(b, secret []byte, binding Binding, nonce [NonceSize]byte) ([]byte, error) {
	start := len(b)
	if a.Status != OK {
		b = appendHeader(b, byte(a.Status), minAttached)
	} else {
		if err := a.Settings.check(); err != nil {
			return b, err
		}
		b = appendHeader(b, byte(a.Status), minAttached+BirthSize+settingsSize+len(a.Settings.Schemes))
		b = append(b, a.Birth[:]...)
		b = a.Settings.append(b)
	}
	return append(b, mac(secret, attachedLabel, binding[:], nonce[:], b[start:])...), nil
}

// Sizes of the answer in bytes.
const (
	minAttached = headerSize + macSize
	maxAttached = minAttached + BirthSize + settingsSize + MaxSchemes
)

// ReadAttached reads the answer to the attach with this nonce on the connection with
// this binding, and no further byte, and authenticates it. With the answer Skewed it
// returns a *SkewError.
func ReadAttached(r io.Reader, secret []byte, binding Binding, nonce [NonceSize]byte) (Attached, error) {
	message, err := readMessage(r, "answer to the attach", minAttached, maxAttached)
	if err != nil {
		return Attached{}, err
	}
	signed, tag := message[:len(message)-macSize], message[len(message)-macSize:]
	if !hmac.Equal(tag, mac(secret, attachedLabel, binding[:], nonce[:], signed)) {
		return Attached{}, ErrMAC
	}
	answer := Attached{Status: Status(signed[5])}
	if answer.Status == Skewed && len(signed) == headerSize+8 {
		return answer, parseSkewed(signed)
	}
	if answer.Status != OK {
		if len(signed) != headerSize {
			return Attached{}, fmt.Errorf("%w: settings with status %d", ErrFormat, answer.Status)
		}
		return answer, nil
	}
	if len(signed) < headerSize+BirthSize {
		return Attached{}, fmt.Errorf("%w: an answer to the attach of %d bytes", ErrFormat, len(message))
	}
	answer.Birth = [BirthSize]byte(signed[headerSize:])
	if answer.Settings, err = parseSettings(signed[headerSize+BirthSize:]); err != nil {
		return Attached{}, err
	}
	return answer, nil
}

// appendHeader appends magic, version, a command or status, and the size of the whole
// message.
func appendHeader(b []byte, kind byte, size int) []byte {
	b = append(b, magic[:]...)
	b = append(b, Version, kind)
	return binary.BigEndian.AppendUint16(b, uint16(size))
}

// readMessage reads one message of minSize to maxSize bytes.
func readMessage(r io.Reader, what string, minSize, maxSize int) ([]byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, fmt.Errorf("reading the %s: %w", what, err)
	}
	if err := checkHeader(header[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint16(header[6:]))
	if size < minSize || size > maxSize {
		return nil, fmt.Errorf("%w: an %s of %d bytes", ErrFormat, what, size)
	}
	message := make([]byte, size)
	copy(message, header[:])
	if _, err := io.ReadFull(r, message[headerSize:]); err != nil {
		return nil, fmt.Errorf("reading the %s: %w", what, err)
	}
	return message, nil
}
