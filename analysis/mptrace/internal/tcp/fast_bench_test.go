package tcp

import (
	"encoding/binary"
	"testing"

	"mplab/analysis/mptrace/packet"
)

func ipFrame(up bool, seq, ack uint32, payload int, flags byte) []byte {
	be := binary.BigEndian
	client, server := []byte{10, 1, 0, 1}, []byte{10, 9, 9, 9}
	from, to, fp, tp := client, server, uint16(40000), uint16(443)
	if !up {
		from, to, fp, tp = to, from, tp, fp
	}
	hl := 44
	if payload > 0 {
		hl = 60
	}
	f := []byte{0x45, 0}
	f = be.AppendUint16(f, uint16(20+hl+payload))
	f = be.AppendUint16(f, uint16(seq))
	f = append(f, 0x40, 0, 64, 6, 0, 0)
	f = append(append(f, from...), to...)
	f = be.AppendUint16(be.AppendUint16(f, fp), tp)
	f = be.AppendUint32(be.AppendUint32(f, seq), ack)
	f = append(f, byte(hl/4)<<4, flags, 1, 0xf6, 0, 0, 0, 0)
	f = append(f, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1)
	if payload == 0 {
		return append(f, 0x1e, 12, 0x20, 3, 0, 0, 0, 0, 0, 0, 0, 1)
	}
	f = append(f, 0x1e, 26, 0x20, 15)
	f = append(f, make([]byte, 22)...)
	return append(f, 1, 1)
}

func BenchmarkFast(b *testing.B) {
	t := NewTracker(Options{})
	var p packet.Packet
	var seg Segment
	add := func(ip []byte, now int64) {
		frame := append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0}, ip...)
		if packet.Decode(1, frame, 14+int(binary.BigEndian.Uint16(ip[2:])), &p) != packet.TCP {
			b.Fatal("no")
		}
		p.TimeNS = now
		t.Add(&p, &seg)
	}
	now := int64(1e9)
	add(ipFrame(true, 99, 0, 0, 2), now)
	add(ipFrame(false, 999, 100, 0, 0x12), now+1)
	add(ipFrame(true, 100, 1000, 0, 0x10), now+2)
	add(ipFrame(false, 1000, 100, 1448, 0x10), now+3)
	add(ipFrame(true, 100, 2448, 0, 0x10), now+4)
	data, ack := ipFrame(false, 0, 100, 1448, 0x10), ipFrame(true, 100, 0, 0, 0x10)
	var st Step
	seq := uint32(2448)
	now += 10
	n := 0
	for b.Loop() {
		for i := range 3 {
			now += 10
			ip := data
			if i == 2 {
				ip = ack
				binary.BigEndian.PutUint32(ip[28:], seq)
			} else {
				binary.BigEndian.PutUint32(ip[24:], seq)
				seq += 1448
			}
			if !t.Fast(ip, 2000, now, &st) {
				b.Fatal(i, n)
			}
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/packet")
}
