package wire

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// Command is the agent's request to the proxy.
type Command byte

// The commands.
const (
	// Connect requests a connection to Destination.
	Connect Command = 1
	// Echo requests the proxy's own echo service. Destination is empty.
	Echo Command = 2
	// Schemes, only on a stream, sends the proxy a new table of schemes as the bytes of
	// the stream. Destination is empty.
	Schemes Command = 4
)

// Hello is the first message of a carrying connection, agent to proxy.
type Hello struct {
	Command     Command
	Time        time.Time // to the millisecond
	Nonce       [NonceSize]byte
	Source      netip.AddrPort // application's address, for the log; may be the zero AddrPort
	Destination netip.AddrPort
}

// NewHello returns a hello with the current time and a new nonce.
func NewHello(command Command, source, destination netip.AddrPort) Hello {
	hello := Hello{Command: command, Time: time.Now(), Source: source, Destination: destination}
	_, _ = rand.Read(hello.Nonce[:]) // never fails: crypto/rand ends the program instead
	return hello
}

// Append appends the encoded, authenticated hello to b.
func (h Hello) Append(b, secret []byte) []byte {
	start := len(b)
	b = append(b, magic[:]...)
	b = append(b, Version, byte(h.Command), 0, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Time.UnixMilli()))
	b = append(b, h.Nonce[:]...)
	b = appendAddr(b, h.Source)
	b = appendAddr(b, h.Destination)
	binary.BigEndian.PutUint16(b[start+6:], uint16(len(b)-start+macSize))
	return append(b, mac(secret, helloLabel, b[start:])...)
}

// ReadHello reads one hello and no further byte, and authenticates it. which is the
// index of the secret that authenticated it, also if the error is ErrCommand. It does
// not check time and nonce: Replay does.
func ReadHello(r io.Reader, secrets ...[]byte) (hello Hello, which int, err error) {
	var buffer [maxHello]byte
	if _, err := io.ReadFull(r, buffer[:headerSize]); err != nil {
		return Hello{}, 0, fmt.Errorf("reading the hello: %w", err)
	}
	if err := checkHeader(buffer[:headerSize]); err != nil {
		return Hello{}, 0, err
	}
	size := int(binary.BigEndian.Uint16(buffer[6:]))
	if size < minHello || size > maxHello {
		return Hello{}, 0, fmt.Errorf("%w: a hello of %d bytes", ErrFormat, size)
	}
	if _, err := io.ReadFull(r, buffer[headerSize:size]); err != nil {
		return Hello{}, 0, fmt.Errorf("reading the hello: %w", err)
	}
	signed, tag := buffer[:size-macSize], buffer[size-macSize:size]
	for which, secret := range secrets {
		if hmac.Equal(tag, mac(secret, helloLabel, signed)) {
			hello, err := parseHello(signed)
			return hello, which, err
		}
	}
	return Hello{}, 0, ErrMAC
}

func parseHello(signed []byte) (Hello, error) {
	hello := Hello{
		Command: Command(signed[5]),
		Time:    time.UnixMilli(int64(binary.BigEndian.Uint64(signed[headerSize:]))),
		Nonce:   [NonceSize]byte(signed[headerSize+8:]),
	}
	var err error
	rest := signed[fixedSize:]
	if hello.Source, rest, err = parseAddr(rest); err != nil {
		return Hello{}, err
	}
	if hello.Destination, rest, err = parseAddr(rest); err != nil {
		return Hello{}, err
	}
	if len(rest) != 0 {
		return Hello{}, fmt.Errorf("%w: %d bytes after the addresses", ErrFormat, len(rest))
	}
	switch {
	case hello.Command != Connect && hello.Command != Echo:
		return hello, fmt.Errorf("%w: %d", ErrCommand, hello.Command)
	case hello.Command == Connect && !hello.Destination.IsValid():
		return hello, fmt.Errorf("%w: connect without a destination", ErrFormat)
	}
	return hello, nil
}

func checkHeader(header []byte) error {
	if [4]byte(header) != magic {
		return ErrFormat
	}
	if header[4] != Version {
		return fmt.Errorf("%w: %d", ErrVersion, header[4])
	}
	return nil
}

// Address families on the wire.
const (
	familyNone = 0
	family4    = 4
	family6    = 6
)

func appendAddr(b []byte, addr netip.AddrPort) []byte {
	ip := addr.Addr().Unmap()
	switch {
	case !addr.IsValid():
		return append(b, familyNone)
	case ip.Is4():
		b = append(b, family4)
	default:
		b = append(b, family6)
	}
	b = binary.BigEndian.AppendUint16(b, addr.Port())
	return append(b, ip.AsSlice()...)
}

func parseAddr(b []byte) (netip.AddrPort, []byte, error) {
	if len(b) < addrMin {
		return netip.AddrPort{}, nil, fmt.Errorf("%w: address cut short", ErrFormat)
	}
	size := map[byte]int{familyNone: 0, family4: 4, family6: 16}
	n, known := size[b[0]]
	if !known {
		return netip.AddrPort{}, nil, fmt.Errorf("%w: address family %d", ErrFormat, b[0])
	}
	if b[0] == familyNone {
		return netip.AddrPort{}, b[1:], nil
	}
	if len(b) < 3+n {
		return netip.AddrPort{}, nil, fmt.Errorf("%w: address cut short", ErrFormat)
	}
	ip, _ := netip.AddrFromSlice(b[3 : 3+n])
	if n == 16 && ip.Is4In6() {
		return netip.AddrPort{}, nil, fmt.Errorf("%w: an IPv4 address in IPv6 form", ErrFormat)
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[1:])), b[3+n:], nil
}
