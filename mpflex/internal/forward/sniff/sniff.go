package sniff

import "mplab/internal/tlshello"

// Limit is the maximum number of bytes that are examined. A stream without a host name
// in them has none.
const Limit = 16 << 10

// Verdict is the result of the bytes up to now.
type Verdict uint8

// The verdicts. More bytes do not change Named or None.
const (
	NeedMore Verdict = iota // a name may follow
	Named                   // a name was found
	None                    // no name, and none can follow
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

// Source is the place of a name.
type Source string

// The sources of names.
const (
	SNI  Source = "sni"  // TLS server_name (RFC 6066 §3)
	Host Source = "host" // HTTP/1.x target or Host (RFC 9112 §3.2)
)

// Result is a verdict, with the name if it is Named.
type Result struct {
	Verdict Verdict
	Name    string // lower case, without a final dot
	Source  Source
}

var (
	needMore = Result{Verdict: NeedMore}
	none     = Result{Verdict: None}
)

// First examines the first bytes of a stream: all that arrived, from the first one on.
// It finds a name as soon as its last byte has arrived. Bytes beyond Limit are ignored.
//
// With Encrypted Client Hello, the name is the outer one, which belongs to the
// provider. HTTP/2 without TLS has host names only in compressed headers, so the
// verdict is None.
func First(data []byte) Result {
	full := len(data) >= Limit
	if full {
		data = data[:Limit]
	}
	result := needMore
	switch {
	case len(data) == 0:
	case data[0] == tlshello.RecordHandshake:
		result = readTLS(data)
	default:
		result = readHTTP(data)
	}
	if full && result.Verdict == NeedMore {
		return none
	}
	return result
}
