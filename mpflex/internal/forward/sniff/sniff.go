package sniff

// Limit is how many bytes are looked at. What has named no host by then, names
// none.
const Limit = 16 << 10

// Verdict is what the bytes so far say.
type Verdict uint8

// The verdicts. Once it is Named or None, more bytes do not change it.
const (
	NeedMore Verdict = iota // a name may still follow
	Named                   // there is a name
	None                    // there is no name, and none will follow
)

func (v Verdict) String() string {
	switch v {
	case NeedMore:
		return "need more"
	case Named:
		return "name"
	}
	return "none"
}

// Source is where a name stood.
type Source string

// The sources of names.
const (
	SNI  Source = "sni"  // TLS server_name (RFC 6066 §3)
	Host Source = "host" // HTTP/1.x target or Host (RFC 9112 §3.2)
)

// Result is a verdict, and with Named the name.
type Result struct {
	Verdict Verdict
	Name    string // lower case, without a final dot
	Source  Source
}

var (
	needMore = Result{Verdict: NeedMore}
	none     = Result{Verdict: None}
)

// First looks at the first bytes of a stream: all that came so far, from the
// very first one. A name is found as soon as its last byte is there. Bytes
// beyond Limit are not looked at.
//
// With Encrypted Client Hello the name is the outer one, which is that of the
// provider. HTTP/2 without TLS names its hosts only in compressed headers: none.
func First(data []byte) Result {
	full := len(data) >= Limit
	if full {
		data = data[:Limit]
	}
	result := needMore
	switch {
	case len(data) == 0:
	case data[0] == recordHandshake:
		result = readTLS(data)
	default:
		result = readHTTP(data)
	}
	if full && result.Verdict == NeedMore {
		return none
	}
	return result
}
