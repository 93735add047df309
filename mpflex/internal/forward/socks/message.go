package socks

import (
	"errors"
	"fmt"
	"io"
)

// Errors of a peer's message.
var (
	// ErrVersion reports another version of SOCKS, or another protocol.
	ErrVersion = errors.New("not SOCKS version 5")
	// ErrMethod reports that the peer offers no accepted method of authentication.
	ErrMethod = errors.New("no acceptable method of authentication")
	// ErrUser reports a wrong user or password.
	ErrUser = errors.New("wrong user or password")
	// ErrCommand reports a command that is unknown or not served.
	ErrCommand = errors.New("command not supported")
	// ErrAddressType reports an address that is neither IPv4 nor IPv6 nor a domain.
	ErrAddressType = errors.New("address type not supported")
	// ErrFormat reports a malformed message.
	ErrFormat = errors.New("malformed message")
	// ErrFragment reports a fragment of a datagram. Fragments are not reassembled.
	ErrFragment = errors.New("a fragment of a datagram")
)

const (
	version     = 5 // RFC 1928
	authVersion = 1 // RFC 1929
)

// Methods of authentication (RFC 1928 §3).
const (
	methodNone     = 0
	methodPassword = 2
	methodRefused  = 0xff
)

// command is the command of a request (RFC 1928 §4).
type command byte

const (
	commandConnect   command = 1
	commandAssociate command = 3
)

// Code is the server's answer to a request (RFC 1928 §6).
type Code byte

// The codes. All except Succeeded end the connection.
const (
	Succeeded               Code = 0
	GeneralFailure          Code = 1
	NotAllowed              Code = 2
	NetworkUnreachable      Code = 3
	HostUnreachable         Code = 4
	ConnectionRefused       Code = 5
	TTLExpired              Code = 6
	CommandNotSupported     Code = 7
	AddressTypeNotSupported Code = 8
)

var codeNames = map[Code]string{
	Succeeded:               "succeeded",
	GeneralFailure:          "general SOCKS server failure",
	NotAllowed:              "connection not allowed by ruleset",
	NetworkUnreachable:      "network unreachable",
	HostUnreachable:         "host unreachable",
	ConnectionRefused:       "connection refused",
	TTLExpired:              "TTL expired",
	CommandNotSupported:     "command not supported",
	AddressTypeNotSupported: "address type not supported",
}

// String returns the meaning of the code, in the words of RFC 1928 §6.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("code %d", byte(c))
}

// readGreeting reads the methods that a client offers. Like all read functions here, it
// reads no byte beyond the message.
func readGreeting(r io.Reader) (methods []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("reading the greeting: %w", err)
	}
	if head[0] != version {
		return nil, fmt.Errorf("%w: the first byte is %d", ErrVersion, head[0])
	}
	methods = make([]byte, head[1])
	if _, err := io.ReadFull(r, methods); err != nil {
		return nil, fmt.Errorf("reading the greeting: %w", err)
	}
	return methods, nil
}

func appendGreeting(b []byte, methods ...byte) []byte {
	return append(append(b, version, byte(len(methods))), methods...)
}

// readCredentials reads a user name and a password (RFC 1929 §2).
func readCredentials(r io.Reader) (user, password string, err error) {
	var head [1]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", "", fmt.Errorf("reading the user: %w", err)
	}
	if head[0] != authVersion {
		return "", "", fmt.Errorf("%w: version %d of user and password", ErrFormat, head[0])
	}
	if user, err = readText(r); err == nil {
		password, err = readText(r)
	}
	if err != nil {
		return "", "", fmt.Errorf("reading the user: %w", err)
	}
	return user, password, nil
}

// readText reads a length of one byte, and as many bytes.
func readText(r io.Reader) (string, error) {
	var buffer [256]byte
	if _, err := io.ReadFull(r, buffer[:1]); err != nil {
		return "", err
	}
	text := buffer[1 : 1+int(buffer[0])]
	if _, err := io.ReadFull(r, text); err != nil {
		return "", err
	}
	return string(text), nil
}

// appendCredentials appends a user name and a password of at most 255 bytes each.
func appendCredentials(b []byte, user, password string) []byte {
	b = append(append(b, authVersion, byte(len(user))), user...)
	return append(append(b, byte(len(password))), password...)
}

// readMessage reads a request or a reply. They differ only in the second byte: the
// command or the code.
func readMessage(r io.Reader) (what byte, address Address, err error) {
	const fixed = 3 // version, command or code, reserved
	var buffer [fixed + maxAddress]byte
	if _, err := io.ReadFull(r, buffer[:fixed+2]); err != nil {
		return 0, Address{}, fmt.Errorf("reading the request: %w", err)
	}
	if buffer[0] != version {
		return 0, Address{}, fmt.Errorf("%w: a request of version %d", ErrVersion, buffer[0])
	}
	size, err := addressSize(buffer[fixed], buffer[fixed+1])
	if err != nil {
		return 0, Address{}, err
	}
	if _, err := io.ReadFull(r, buffer[fixed+2:fixed+size]); err != nil {
		return 0, Address{}, fmt.Errorf("reading the request: %w", err)
	}
	address, _, err = parseAddress(buffer[fixed : fixed+size])
	return buffer[1], address, err
}

func appendMessage(b []byte, what byte, address Address) []byte {
	return address.append(append(b, version, what, 0))
}

// parseDatagram decodes the header of a datagram (RFC 1928 §7). payload is a part of b.
func parseDatagram(b []byte) (address Address, payload []byte, err error) {
	if len(b) < 3 {
		return Address{}, nil, fmt.Errorf("%w: a datagram of %d bytes", ErrFormat, len(b))
	}
	if b[2] != 0 {
		return Address{}, nil, fmt.Errorf("%w: number %d", ErrFragment, b[2])
	}
	return parseAddress(b[3:])
}

func appendDatagram(b []byte, address Address, payload []byte) []byte {
	return append(address.append(append(b, 0, 0, 0)), payload...)
}
