package source

import (
	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/packet"
)

// portDNS is the only port from which answers are used. Answers of multicast
// DNS (port 5353) contain no question, so the queried name is unknown (RFC 6762
// §6).
const portDNS = 53

// Answer is a completely captured UDP datagram from port 53.
type Answer struct {
	TimeNS  int64  // since 1970 UTC
	Message []byte // payload; it may not be valid DNS
	Before  int    // index of the next packet in its block
}

// answer keeps a frame without a TCP segment if it is from port 53. It holds
// the frame's batch, as for segments, which bounds the number of answers.
func (s *Source) answer(b *Block, in *input, link int, r *capfile.Record, before int) {
	port, message, ok := packet.Datagram(link, r.Data)
	if !ok || port != portDNS {
		return
	}
	b.Answers = append(b.Answers, Answer{r.TimeNS, message, before})
	s.hold(b, in.batch)
}

// hold keeps a batch until a block is released.
func (s *Source) hold(b *Block, held *batch) {
	if held.fill != s.fills {
		held.fill = s.fills
		held.users++
		b.batches = append(b.batches, held)
	}
}
