package names

import (
	"net/netip"
	"strings"
)

const (
	maxName  = 253 // characters without the final dot (RFC 1035 §2.3.4)
	maxLabel = 63
)

// Normalize returns a host name in lower case without its final dot. It returns false
// if the text is not a host name, or is an address. Underscores are allowed, as some
// hosts on the Internet have them. Names beyond ASCII must have their xn-- form (RFC
// 5890 §2.3.2.1). It allocates only for a name with upper-case letters.
func Normalize(text string) (string, bool) {
	text = strings.TrimSuffix(text, ".")
	if text == "" || len(text) > maxName {
		return "", false
	}
	label := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.':
			if label == 0 {
				return "", false
			}
			label = 0
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			if label++; label > maxLabel {
				return "", false
			}
		default:
			return "", false
		}
	}
	if label == 0 || isAddress(text) {
		return "", false
	}
	return strings.ToLower(text), true
}

// isAddress reports whether a text without colons is an IPv4 address. Such a text ends
// in a digit.
func isAddress(text string) bool {
	last := text[len(text)-1]
	if last < '0' || last > '9' {
		return false
	}
	_, err := netip.ParseAddr(text)
	return err == nil
}
