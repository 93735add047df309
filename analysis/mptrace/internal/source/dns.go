package source

import (
	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/packet"
)

// portDNS is the one port that answers are taken from. Multicast DNS (port
// 5353) is left out: its answers have no question that would tell which name
// was asked for (RFC 6762 §6).
const portDNS = 53

// Answer is a UDP datagram that comes from port 53 and was captured whole.
type Answer struct {
	TimeNS  int64  // unix
	Message []byte // the payload: any bytes, though DNS is to be expected
	Before  int    // the packet of its block that it comes before: 0 to their number
}

// answer keeps a frame that is no segment when it is an answer of DNS. Its
// batch is held as those of segments are, which bounds how many there are.
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
