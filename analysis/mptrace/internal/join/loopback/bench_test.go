package loopback

import (
	"testing"

	"mplab/analysis/mptrace/packet"
)

func BenchmarkRewrite(b *testing.B) {
	server := packet.Addr{Lo: 0xffff_09090909}
	redirect, client := packet.Addr{Lo: 0xffff_7f000001}, packet.Addr{Lo: 0xffff_0a000002}
	for name, to := range map[string]packet.Addr{"joined": redirect, "other": server} {
		b.Run(name, func(b *testing.B) {
			j := New(Options{})
			p := packet.Packet{Src: client, SrcPort: 4000, Dst: to, DstPort: 8123, Flags: packet.SYN, Seq: 1}
			j.Rewrite(&p)
			p = packet.Packet{Src: server, SrcPort: 443, Dst: client, DstPort: 4000, Flags: packet.SYN | packet.ACK, Ack: 2}
			j.Rewrite(&p)
			b.ReportAllocs()
			for b.Loop() {
				p = packet.Packet{Src: client, SrcPort: 4000, Dst: to, DstPort: 8123, Flags: packet.ACK, Seq: 2}
				j.Rewrite(&p)
			}
		})
	}
}
