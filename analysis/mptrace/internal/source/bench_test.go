package source

import (
	"io"
	"testing"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/packet"
)

const million = 1_000_000

func perPacket(b *testing.B, packets int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(packets), "ns/packet")
}

// BenchmarkWalk reads the records without decoding them.
func BenchmarkWalk(b *testing.B) {
	name := bulk(b, "bulk.pcapng", "wlan0", 1, million, 0)
	for b.Loop() {
		f, err := capfile.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		packets := 0
		var batch capfile.Batch
		for err = f.Read(&batch); err == nil; err = f.Read(&batch) {
			packets += len(batch.Records)
		}
		if err != io.EOF || packets != million {
			b.Fatal(err, packets)
		}
		f.Close()
	}
	perPacket(b, million)
}

// BenchmarkDecode decodes the same frames repeatedly.
func BenchmarkDecode(b *testing.B) {
	const frames = 256
	var list [frames][]byte
	for i := range list {
		list[i] = bulkFrame(1, uint32(i), i%3 == 2)
	}
	packets := make([]packet.Packet, frames)
	for b.Loop() {
		for i, f := range list {
			if packet.Decode(packet.LinkEthernet, f, 1514, &packets[i]) != packet.TCP {
				b.Fatal("no segment")
			}
		}
	}
	perPacket(b, frames)
}

func benchmarkSource(b *testing.B, names ...string) {
	for b.Loop() {
		s := Open(names, Options{})
		packets := 0
		for block := range blocks(s) {
			packets += len(block)
		}
		if packets != million {
			b.Fatal(packets, s.Files())
		}
	}
	perPacket(b, million)
}

// BenchmarkRead reads and decodes one file.
func BenchmarkRead(b *testing.B) {
	benchmarkSource(b, bulk(b, "bulk.pcapng", "wlan0", 1, million, 0))
}

// BenchmarkMerge merges two files whose packets alternate.
func BenchmarkMerge(b *testing.B) {
	benchmarkSource(b,
		bulk(b, "a.pcapng", "wlan0", 1, million/2, 0),
		bulk(b, "b.pcapng", "rmnet0", 2, million/2, 5_000))
}
