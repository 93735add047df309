package anonymise

import (
	"encoding/binary"

	"mplab/analysis/mptrace/packet"
)

const (
	optionEnd   = 0
	optionNOP   = 1
	optionMPTCP = 30
	subAddAddr  = 3
	hmacSize    = 8
)

// tcp replaces a TCP segment. b is its captured part.
//
// A correct checksum is computed again, because mptrace recognises copies of a
// segment by it. A partial sum that waits for checksum offload stays partial.
// All others become 0: unchanged, they would reveal 16 bits of the replaced
// addresses.
func (a *Addresses) tcp(b []byte, addresses pseudo) {
	captured := b[min(16, len(b)):min(18, len(b))]
	if len(b) < 20 {
		clear(captured)
		return
	}
	checksum := int(binary.BigEndian.Uint16(captured))
	clear(captured)
	header := int(b[12]>>4) * 4
	end := min(header, len(b))
	old := sum(b[:end])
	clear(b[a.options(b, end):])
	if header >= 20 && header <= len(b) {
		binary.BigEndian.PutUint16(b[16:], addresses.checksum(checksum, header, old, sum(b[:header])))
	}
}

// options replaces the options of a segment whose header has end bytes. It
// returns the end of the last whole option.
func (a *Addresses) options(b []byte, end int) int {
	at := 20
	for at < end && b[at] != optionEnd {
		if b[at] == optionNOP {
			at++
			continue
		}
		if at+1 == end {
			break
		}
		size := int(b[at+1])
		if size < 2 || at+size > end {
			break
		}
		a.option(b[at : at+size])
		at += size
	}
	return min(at, end)
}

// option replaces an option. Its kind and length stay. Its value stays if it is
// maximum segment size, window scale, SACK, timestamps, or MPTCP but not
// ADD_ADDR.
func (a *Addresses) option(o []byte) {
	switch {
	case o[0] == optionMPTCP && len(o) > 2 && o[2]>>4 == subAddAddr:
		a.addAddr(o)
	case o[0] == optionMPTCP, packet.WellFormed(o):
	default:
		clear(o[2:])
	}
}

// addAddr replaces ADD_ADDR (RFC 8684 §3.4.1, RFC 6824 §3.4.1), whose length
// determines its form. With the keys in the capture, its HMAC would reveal the
// address.
func (a *Addresses) addAddr(o []byte) {
	const start = 4
	size := 0
	switch len(o) {
	case 8, 10, 16, 18:
		size = 4
	case 20, 22, 28, 30:
		size = 16
	default: // no known form: the subtype stays, so that it becomes no other option
		o[2] &= 0xf0
		clear(o[3:])
		return
	}
	a.Replace(o[start : start+size])
	if len(o) >= start+size+hmacSize {
		clear(o[len(o)-hmacSize:])
	}
}
