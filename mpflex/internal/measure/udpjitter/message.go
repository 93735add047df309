package udpjitter

import (
	"encoding/binary"
	"errors"
)

// A message is a UDP datagram: this header, in network byte order, then zeros.
//
//	 0  4  magic "MPJ1"
//	 4  1  kind: 1 probe, 2 answer, 3 end, 4 totals
//	 5  3  zero
//	 8  8  flow: random, chosen by the client
//	16  4  sequence number of the probe, from 0
//	20  4  order: number of different probes that had arrived, this one included
//	24  8  sent: when the probe left, ns of the client's clock
//	32  8  arrived: when it reached the server, ns of the server's clock
//	40  4  reordered: probes that arrived after one with a higher number
//	44  4  duplicates: further arrivals of probes
//	48  8  jitter of the probes' arrivals, ns (RFC 3550 §6.4.1)
//
// The client fills in flow, sequence and sent. The server answers each probe with a
// datagram of the same size, and each end with the current totals. It never answers a
// server's message, so two servers cannot send to each other in a loop. An answer is
// never larger than the message it answers.
const (
	magic = "MPJ1"
	// MinSize is the size of the header, and so of the smallest datagram, in bytes.
	MinSize = 56
	// MaxSize is the size of the largest datagram, in bytes.
	MaxSize = 60_000
)

type kind byte

const (
	kindProbe  kind = 1
	kindAnswer kind = 2
	kindEnd    kind = 3
	kindTotals kind = 4
)

var errMessage = errors.New("not a message of udp-jitter")

type message struct {
	kind                  kind
	flow                  uint64
	sequence, order       uint32
	sent, arrived         int64
	reordered, duplicates uint32
	jitter                int64
}

// put writes the header into b, which must have at least MinSize bytes.
func (m message) put(b []byte) {
	copy(b, magic)
	clear(b[4:8])
	b[4] = byte(m.kind)
	binary.BigEndian.PutUint64(b[8:], m.flow)
	binary.BigEndian.PutUint32(b[16:], m.sequence)
	binary.BigEndian.PutUint32(b[20:], m.order)
	binary.BigEndian.PutUint64(b[24:], uint64(m.sent))
	binary.BigEndian.PutUint64(b[32:], uint64(m.arrived))
	binary.BigEndian.PutUint32(b[40:], m.reordered)
	binary.BigEndian.PutUint32(b[44:], m.duplicates)
	binary.BigEndian.PutUint64(b[48:], uint64(m.jitter))
}

// parseMessage decodes the header of a datagram.
func parseMessage(b []byte) (message, error) {
	if len(b) < MinSize || string(b[:4]) != magic || b[4] < byte(kindProbe) || b[4] > byte(kindTotals) {
		return message{}, errMessage
	}
	return message{
		kind:       kind(b[4]),
		flow:       binary.BigEndian.Uint64(b[8:]),
		sequence:   binary.BigEndian.Uint32(b[16:]),
		order:      binary.BigEndian.Uint32(b[20:]),
		sent:       int64(binary.BigEndian.Uint64(b[24:])),
		arrived:    int64(binary.BigEndian.Uint64(b[32:])),
		reordered:  binary.BigEndian.Uint32(b[40:]),
		duplicates: binary.BigEndian.Uint32(b[44:]),
		jitter:     int64(binary.BigEndian.Uint64(b[48:])),
	}, nil
}
