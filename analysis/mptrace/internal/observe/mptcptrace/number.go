package mptcptrace

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"

	"mplab/analysis/mptrace/packet"
)

// learn derives the initial data sequence numbers from the keys in MP_CAPABLE,
// and records the time of the third packet of the handshake.
func (c *connection) learn(dir int, p *packet.Packet) {
	option := p.Capable()
	if p.Flags&packet.SYN == 0 && !c.third {
		c.third, c.beginNS = true, p.TimeNS
	}
	if c.fixed {
		return
	}
	if option.Keys > 0 {
		c.ways[dir].first = initial(option.SenderKey, option.Version)
	}
	if option.Keys > 1 {
		c.ways[1-dir].first = initial(option.ReceiverKey, option.Version)
	}
}

// initial returns the low half of the initial data sequence number: the end of
// the hash of the key (RFC 6824 §3.1, RFC 8684 §3.1).
func initial(key uint64, version uint8) uint64 {
	b := binary.BigEndian.AppendUint64(nil, key)
	if version == 0 {
		sum := sha1.Sum(b)
		return uint64(binary.BigEndian.Uint32(sum[16:]))
	}
	sum := sha256.Sum256(b)
	return uint64(binary.BigEndian.Uint32(sum[28:]))
}

// number returns the number of a byte as it appears in the files.
func (w *way) number(offset uint64) uint64 { return w.first + 1 + offset }
