package sniff

import (
	"bytes"
	"strings"
	"unicode"

	"mplab/mpflex/internal/names"
)

const (
	// maxMethod bounds a method's length. The longest registered one has 17 characters
	// (RFC 3253 §12.1).
	maxMethod = 24
	// prefaceMethod starts HTTP/2 without TLS (RFC 9113 §3.4).
	prefaceMethod = "PRI"
)

// readHTTP parses the request line and the header fields of HTTP/1.x (RFC 9112 §3, §5).
// They may be incomplete.
func readHTTP(data []byte) Result {
	data, cut := skipEmptyLines(data)
	if cut {
		return needMore
	}
	method, rest, found := bytes.Cut(data, []byte(" "))
	if !isToken(method) || len(method) > maxMethod || found && string(method) == prefaceMethod {
		return none
	}
	if !found {
		return needMore
	}
	line, rest, whole := cutLine(rest)
	if bytes.ContainsFunc(line, unicode.IsControl) {
		return none
	}
	if !whole {
		return needMore
	}
	target, version, _ := bytes.Cut(line, []byte(" "))
	if len(target) == 0 || !isVersion(version) {
		return none
	}
	if authority, ok := authorityOf(string(method), string(target)); ok {
		return named(authority)
	}
	return hostField(rest)
}

// hostField finds the Host field in the header fields. A folded line (RFC 9112 §5.2)
// belongs to the field before it.
func hostField(data []byte) Result {
	for {
		line, rest, whole := cutLine(data)
		if !whole {
			return needMore
		}
		if len(line) == 0 {
			return none
		}
		name, value, colon := bytes.Cut(line, []byte(":"))
		if line[0] != ' ' && line[0] != '\t' {
			if !colon || !isToken(name) {
				return none
			}
			if strings.EqualFold(string(name), "host") {
				return named(string(bytes.Trim(value, " \t")))
			}
		}
		data = rest
	}
}

// authorityOf returns the authority in the target of a request: with CONNECT the whole
// target, otherwise that of an absolute URI (RFC 9112 §3.2.2, §3.2.3). It overrides the
// Host field.
func authorityOf(method, target string) (string, bool) {
	if method == "CONNECT" {
		return target, true
	}
	scheme, after, found := strings.Cut(target, "://")
	if !found || scheme == "" || strings.ContainsAny(scheme, "/?#") {
		return "", false
	}
	if end := strings.IndexAny(after, "/?#"); end >= 0 {
		after = after[:end]
	}
	return after[strings.LastIndexByte(after, '@')+1:], true
}

// named returns the result for an authority: a host and possibly a port. An IP address
// is not a name.
func named(authority string) Result {
	host, _, _ := strings.Cut(authority, ":")
	if name, ok := names.Normalize(host); ok {
		return Result{Named, name, Host}
	}
	return none
}

// skipEmptyLines skips the empty lines that some clients send before a request (RFC
// 9112 §2.2). cut means that more of them may follow.
func skipEmptyLines(data []byte) (rest []byte, cut bool) {
	rest = bytes.TrimLeft(data, "\r\n")
	return rest, len(rest) == 0
}

// cutLine returns the first line without its end, and the rest. A line may end with a
// line feed without a carriage return (RFC 9112 §2.2).
func cutLine(data []byte) (line, rest []byte, whole bool) {
	line, rest, whole = bytes.Cut(data, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest, whole
}

func isVersion(version []byte) bool {
	return len(version) == 8 && string(version[:7]) == "HTTP/1." && '0' <= version[7] && version[7] <= '9'
}

// isToken reports whether a text is a token (RFC 9110 §5.6.2).
func isToken(text []byte) bool {
	for _, c := range text {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return len(text) > 0
}
