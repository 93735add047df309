package ends

import (
	"testing"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/packet"
)

// bulk is the capture of a long download at one end: a segment every gap, an
// acknowledgement for every second segment, one in a thousand lost and
// retransmitted. Packets are generated on reading.
type bulk struct {
	end     int
	count   int
	opening int
	at      [2]int // index of the next data packet and acknowledgement
	packet  packet.Packet
}

const (
	bulkGap   = 20_000
	bulkDelay = 10_000_000
	bulkBytes = 1400
	bulkLost  = 1000 // one in this many
)

func (b *bulk) close() {}

func (b *bulk) iface(int32) string { return "wlan0" }

// data returns when the n-th segment passes this end; −1: it was lost.
func (b *bulk) data(n int) int64 {
	at := int64(n) * bulkGap
	if b.end == proxyEnd {
		return at
	}
	if n%bulkLost == 7 {
		return -1
	}
	return at + bulkDelay + int64(n*7919%5000)
}

func (b *bulk) ack(n int) int64 {
	at := int64(n)*2*bulkGap + bulkDelay + 10_000
	if b.end == proxyEnd {
		return at + bulkDelay
	}
	return at
}

func (b *bulk) next() *packet.Packet {
	client, server := address(1), address(100)
	p := &b.packet
	*p = packet.Packet{Src: client, Dst: server, SrcPort: 40_000, DstPort: 443, Has: packet.HasTimestamps, Flags: packet.ACK}
	if b.opening < 2 {
		b.opening++
		p.TimeNS, p.Flags = simStart-int64(3-b.opening)*4*bulkDelay, packet.SYN
		if b.end == proxyEnd {
			p.TimeNS += bulkDelay
		}
		if b.opening == 2 {
			*p = packet.Packet{Src: server, Dst: client, SrcPort: 443, DstPort: 40_000, Flags: packet.SYN | packet.ACK, Ack: 1, TimeNS: simStart - 3*bulkDelay}
			if b.end == phoneEnd {
				p.TimeNS += bulkDelay
			}
		}
		return p
	}
	for b.at[0] < b.count && b.data(b.at[0]) < 0 {
		b.at[0]++
	}
	data, ack := b.data(b.at[0]), b.ack(b.at[1])
	switch {
	case b.at[0] >= b.count && b.at[1]*2 >= b.count:
		return nil
	case b.at[0] < b.count && (data <= ack || b.at[1]*2 >= b.count):
		n := b.at[0]
		b.at[0]++
		p.Src, p.Dst, p.SrcPort, p.DstPort = server, client, 443, 40_000
		p.TimeNS, p.Payload, p.IPID = simStart+data, bulkBytes, uint16(n)
		p.TSVal = uint32(int64(n) * bulkGap / 1e6)
		if n%bulkLost == bulkLost-1 { // the lost segment
			n -= bulkLost - 8
		} else if n%bulkLost == bulkLost-2 {
			p.Flags |= packet.PSH
		}
		p.Seq = 1 + uint32(n)*bulkBytes
		return p
	}
	n := b.at[1]
	b.at[1]++
	p.TimeNS, p.Seq, p.Ack, p.IPID = simStart+ack, 1, 1+uint32(n)*2*bulkBytes, uint16(n)
	p.TSVal = uint32(int64(n) * 2 * bulkGap / 1e6)
	return p
}

// deaf is a follower that ignores all packets.
type deaf struct{}

func (deaf) add(*packet.Packet) {}

func (deaf) close() {}

func BenchmarkMatch(b *testing.B) {
	for _, c := range []struct {
		name string
		with following
	}{
		{"alone", func(Options, func(int32) string, mptcp.Observer) follower { return deaf{} }},
		{"with the engine", follow},
	} {
		b.Run(c.name, func(b *testing.B) {
			const count = 1_000_000
			b.ReportAllocs()
			packets := int64(0)
			for b.Loop() {
				r, err := match([2]opener{
					func() stream { return &bulk{end: phoneEnd, count: count} }, func() stream { return &bulk{end: proxyEnd, count: count} },
				}, Options{}, c.with)
				if err != nil {
					b.Fatal(err)
				}
				packets += r.Summary.PacketsPhone + r.Summary.PacketsProxy
			}
			b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}
