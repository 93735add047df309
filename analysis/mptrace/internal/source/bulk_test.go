package source

import (
	"encoding/binary"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"mplab/analysis/mptrace/packet"
)

// blocks returns the decoded packets of all blocks, filled one after the other.
func blocks(s *Source) iter.Seq[[]packet.Packet] {
	return func(yield func([]packet.Packet) bool) {
		var b Block
		for s.Next(&b) && yield(decoded(s, &b)) {
		}
	}
}

// decoded returns the packets of a block.
func decoded(s *Source, b *Block) (all []packet.Packet) {
	for p := range s.Packets(b) {
		all = append(all, *p)
	}
	return all
}

// bulk writes a pcapng capture as made on a phone, of a download over one
// subflow: headers only, Ethernet, IPv4, timestamps, 64-bit DSS. Two segments
// of 1448 bytes and one acknowledgement alternate, 10 µs apart.
func bulk(tb testing.TB, name, iface string, subflow byte, packets int, startNS int64) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), name)
	b := append(sectionBlock(), interfaceBlock(1, iface)...)
	for i := range packets {
		frame := bulkFrame(subflow, uint32(i/3*2+i%3), i%3 == 2)
		wire := len(frame)
		if i%3 != 2 {
			wire += 1448
		}
		b = enhanced(b, 0, startNS+int64(i)*10_000, frame, wire)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

// bulkFrame returns a segment or its acknowledgement, up to the end of the
// options.
func bulkFrame(subflow byte, segment uint32, ack bool) []byte {
	be := binary.BigEndian
	client, server := []byte{10, subflow, 0, 1}, []byte{10, 9, 9, 9}
	from, to, fromPort, toPort := server, client, uint16(443), uint16(40000)+uint16(subflow)
	payload, tcp := 1448, 60
	if ack {
		from, to, fromPort, toPort, payload, tcp = to, from, toPort, fromPort, 0, 44
	}
	f := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0}
	f = append(f, 0x45, 0)
	f = be.AppendUint16(f, uint16(20+tcp+payload))
	f = be.AppendUint16(f, uint16(segment))
	f = append(f, 0x40, 0, 64, 6, 0, 0)
	f = append(append(f, from...), to...)
	f = be.AppendUint16(be.AppendUint16(f, fromPort), toPort)
	number := 1000 + segment*1448
	if ack {
		f = be.AppendUint32(be.AppendUint32(f, 77), number)
	} else {
		f = be.AppendUint32(be.AppendUint32(f, number), 77)
	}
	f = append(f, byte(tcp/4)<<4, 0x10, 1, 0xf6, 0, 0, 0, 0)
	f = append(f, 1, 1, 8, 10)
	f = be.AppendUint32(be.AppendUint32(f, segment), segment)
	data := 1<<40 + uint64(number)
	if ack {
		return be.AppendUint64(append(f, 30, 12, 0x20, 3), data)
	}
	f = be.AppendUint64(append(f, 30, 26, 0x20, 0x0f), 5)
	f = be.AppendUint32(be.AppendUint64(f, data), number-1000)
	return append(be.AppendUint16(f, 1448), 1, 1)
}

func block(kind uint32, body []byte) []byte {
	le := binary.LittleEndian
	size := uint32(12 + len(body))
	b := append(le.AppendUint32(le.AppendUint32(nil, kind), size), body...)
	return le.AppendUint32(b, size)
}

func sectionBlock() []byte {
	return block(0x0a0d0d0a, []byte{
		0x4d, 0x3c, 0x2b, 0x1a, // little endian
		1, 0, 0, 0, // version 1.0
		255, 255, 255, 255, 255, 255, 255, 255, // unknown length
	})
}

// interfaceBlock describes an interface with nanosecond time stamps.
func interfaceBlock(link byte, name string) []byte {
	body := []byte{link, 0, 0, 0, 0, 0, 4, 0, 2, 0, byte(len(name)), 0}
	body = append(body, name...)
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	return block(1, append(body, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0))
}

// enhanced appends a packet.
func enhanced(b []byte, iface uint32, timeNS int64, frame []byte, wire int) []byte {
	le := binary.LittleEndian
	padded := (len(frame) + 3) &^ 3
	b = le.AppendUint32(le.AppendUint32(b, 6), uint32(32+padded))
	b = le.AppendUint32(b, iface)
	b = le.AppendUint32(le.AppendUint32(b, uint32(timeNS>>32)), uint32(timeNS))
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(frame))), uint32(wire))
	b = append(append(b, frame...), make([]byte, padded-len(frame))...)
	return le.AppendUint32(b, uint32(32+padded))
}
