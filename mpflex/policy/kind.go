package policy

import "strings"

// Kind is the kind of network of an interface.
type Kind string

// The kinds that rules can name instead of an interface.
const (
	WiFi     Kind = "wifi"
	Cellular Kind = "cellular"
	Ethernet Kind = "ethernet"
	Other    Kind = "other"
)

// kinds lists the kinds that a rule file may name.
var kinds = []string{string(WiFi), string(Cellular), string(Ethernet)}

// prefixes of interface names: of Android, of vendors' modems, and systemd's
// predictable names.
var prefixes = []struct {
	prefix string
	kind   Kind
}{
	{"wl", WiFi}, {"swlan", WiFi}, {"mlan", WiFi},
	{"rmnet", Cellular}, {"v4-rmnet", Cellular}, {"ccmni", Cellular}, {"ww", Cellular}, {"pdp", Cellular}, {"ppp", Cellular},
	{"eth", Ethernet}, {"en", Ethernet},
}

// KindOf returns the kind of an interface. It depends only on the name, so agent and
// proxy agree.
func KindOf(device string) Kind {
	for _, p := range prefixes {
		if strings.HasPrefix(device, p.prefix) {
			return p.kind
		}
	}
	return Other
}

// maxInterface is the maximum length of an interface's name (IFNAMSIZ - 1).
const maxInterface = 15

// isInterface reports whether a text can be the name of an interface.
func isInterface(text string) bool {
	if text == "" || len(text) > maxInterface || text == "." || text == ".." {
		return false
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || c == '/' || c == ':' {
			return false
		}
	}
	return true
}
