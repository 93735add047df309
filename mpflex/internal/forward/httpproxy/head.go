package httpproxy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"

	"mplab/mpflex/internal/forward/socks"
)

// Errors of a client's request.
var (
	// ErrFormat reports a malformed request.
	ErrFormat = errors.New("malformed request")
	// ErrTarget reports a target in the form for a server, not for a proxy.
	ErrTarget = errors.New("not a request to a proxy")
	// ErrScheme reports a target with another scheme than http.
	ErrScheme = errors.New("the target is not http")
	// ErrTooLong reports a head longer than the limit.
	ErrTooLong = errors.New("the head of the request is too long")
)

// methodConnect requests a tunnel (RFC 9110 §9.3.6).
const methodConnect = "CONNECT"

// forOneHop lists the fields that are not forwarded (RFC 9110 §7.6.1), and Host, which
// the target overrides (RFC 9112 §3.2.2).
var forOneHop = []string{
	"connection", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "upgrade",
}

// endOfHead returns the size of a head with its final empty line; 0: the head is
// incomplete. A line may end with a line feed without a carriage return (RFC 9112
// §2.2).
func endOfHead(data []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(data[from:], '\n')
		if i < 0 {
			return 0
		}
		from += i + 1
		rest := data[from:]
		switch {
		case bytes.HasPrefix(rest, []byte("\n")):
			return from + 1
		case bytes.HasPrefix(rest, []byte("\r\n")):
			return from + 2
		}
	}
}

// parseHead parses the head of a request. first is the head to send to the server
// instead. nil: the request is for a tunnel.
func parseHead(head []byte) (destination socks.Address, first []byte, err error) {
	lines := strings.Split(strings.TrimRight(string(head), "\r\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
		if strings.ContainsFunc(lines[i], func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
			return socks.Address{}, nil, fmt.Errorf("%w: a control character in %.60q", ErrFormat, lines[i])
		}
	}
	words := strings.Split(lines[0], " ")
	if len(words) != 3 || words[0] == "" || words[1] == "" || !strings.HasPrefix(words[2], "HTTP/1.") {
		return socks.Address{}, nil, fmt.Errorf("%w: %.60q", ErrFormat, lines[0])
	}
	method, target, version := words[0], words[1], words[2]
	if method == methodConnect {
		destination, err = addressOf(target, "")
		return destination, nil, err
	}
	scheme, after, found := strings.Cut(target, "://")
	switch {
	case !found || strings.ContainsAny(scheme, "/?#"):
		return socks.Address{}, nil, fmt.Errorf("%w: %.60q", ErrTarget, lines[0])
	case !strings.EqualFold(scheme, "http"):
		return socks.Address{}, nil, fmt.Errorf("%w: %.60q", ErrScheme, target)
	}
	authority, path := after, "/"
	if end := strings.IndexAny(after, "/?#"); end >= 0 {
		authority, path = after[:end], after[end:]
	}
	if path[0] != '/' {
		path = "/" + path
	}
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if destination, err = addressOf(authority, "80"); err != nil {
		return socks.Address{}, nil, err
	}
	first, err = rewrite(method+" "+path+" "+version, authority, lines[1:])
	return destination, first, err
}

// addressOf parses "host:port". otherwise is the default port; "": the port is
// required.
func addressOf(authority, otherwise string) (socks.Address, error) {
	host, digits, err := net.SplitHostPort(authority)
	if err != nil && otherwise != "" {
		host, digits, err = net.SplitHostPort(authority + ":" + otherwise)
	}
	if err != nil {
		return socks.Address{}, fmt.Errorf("%w: %.60q is not HOST:PORT", ErrFormat, authority)
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 {
		return socks.Address{}, fmt.Errorf("%w: the port of %.60q", ErrFormat, authority)
	}
	address, err := socks.ParseHost(host, uint16(port))
	if err != nil {
		return socks.Address{}, fmt.Errorf("%w: the host of %.60q", ErrFormat, authority)
	}
	return address, nil
}

// rewrite returns the head for the server: without the fields for this hop, and with
// "Connection: close", because the client's next request may be for another server (RFC
// 9112 §9.6).
func rewrite(line, host string, fields []string) ([]byte, error) {
	drop := make(map[string]bool)
	for _, name := range forOneHop {
		drop[name] = true
	}
	names := make([]string, len(fields))
	for i, field := range fields {
		name, value, found := strings.Cut(field, ":")
		if !found || name == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("%w: the field %.60q", ErrFormat, field)
		}
		names[i] = strings.ToLower(name)
		if names[i] == "connection" {
			for option := range strings.SplitSeq(value, ",") {
				drop[strings.ToLower(strings.TrimSpace(option))] = true
			}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\r\nHost: %s\r\n", line, host)
	for i, field := range fields {
		if !drop[names[i]] {
			b.WriteString(field + "\r\n")
		}
	}
	b.WriteString("Connection: close\r\n\r\n")
	return b.Bytes(), nil
}
