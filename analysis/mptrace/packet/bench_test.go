package packet

import (
	"slices"
	"testing"
)

// BenchmarkDecode decodes segments with common options.
func BenchmarkDecode(b *testing.B) {
	const timestamps = "01 01 08 0a 00 00 00 05 00 00 00 06 "
	for _, c := range []struct{ name, options string }{
		{"none", ""},
		{"timestamps", timestamps},
		{"ack64", timestamps + "1e 0c 20 03 00 00 00 00 00 00 10 00"},
		{"ack64+map64", timestamps + "1e 1a 20 0f 00 00 00 00 00 00 10 00 11 22 33 44 55 66 77 88 00 00 00 11 05 90 01 01"},
		{"ack32", timestamps + "1e 08 20 01 00 00 10 00"},
		{"ack32+map64", timestamps + "1e 16 20 0d 00 00 10 00 11 22 33 44 55 66 77 88 00 00 00 11 05 90 01 01"},
		{"ack32+map32+checksum", timestamps + "1e 14 20 05 00 00 10 00 11 22 33 44 00 00 00 11 05 90 ab cd"},
		{"SACK+ack64", timestamps + "01 01 05 0a 00 00 00 05 00 00 00 06 1e 0c 20 03 00 00 00 00 00 00 10 00"},
		{"SYN", "02 04 05 b4 04 02 08 0a 00 00 00 05 00 00 00 06 01 03 03 07 1e 04 01 01"},
	} {
		frame := slices.Concat(bytesOf(b, ethernet4), segmentWith(bytesOf(b, c.options)))
		b.Run(c.name, func(b *testing.B) {
			var packets [64]Packet
			for i := 0; b.Loop(); i++ {
				if Decode(LinkEthernet, frame, len(frame), &packets[i%len(packets)]) != TCP {
					b.Fatal("no segment")
				}
			}
		})
	}
}
