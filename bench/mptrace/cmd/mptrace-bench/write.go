package main

import (
	"bufio"
	"encoding/binary"
	"io"

	"mplab/analysis/mptrace/labtest"
)

const (
	pcapMagic   = 0xa1b2c3d4
	pcapngMagic = 0x0a0d0d0a
	packetBlock = 6
	linkEther   = 1
)

// writer writes a trace: pcap with microseconds, which every tool reads, or
// pcapng with nanoseconds and interfaces, as `mptrace capture` writes it.
type writer struct {
	out    *bufio.Writer
	pcapng bool
	block  []byte
	count  int64
}

func newWriter(out io.Writer, pcapng bool) *writer {
	w := &writer{out: bufio.NewWriterSize(out, readSize), pcapng: pcapng}
	le := binary.LittleEndian
	if !pcapng {
		b := le.AppendUint32(nil, pcapMagic)
		b = le.AppendUint32(b, 2|4<<16) // version 2.4
		b = append(b, make([]byte, 8)...)
		b = le.AppendUint32(b, 1<<18)
		_, _ = w.out.Write(le.AppendUint32(b, linkEther)) // flush returns the error
		return w
	}
	w.whole(pcapngMagic, append(le.AppendUint32(nil, 0x1a2b3c4d), 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255))
	for _, name := range labtest.ClientInterfaces {
		b := le.AppendUint32(le.AppendUint32(nil, linkEther), 1<<18)
		b = append(b, 2, 0, byte(len(name)), 0) // if_name
		b = append(b, name...)
		b = append(b, make([]byte, -len(b)&3)...)
		b = append(b, 9, 0, 1, 0, 9, 0, 0, 0) // if_tsresol: nanoseconds
		w.whole(1, append(b, 0, 0, 0, 0))
	}
	return w
}

func (w *writer) whole(kind uint32, body []byte) {
	le := binary.LittleEndian
	size := uint32(len(body) + 12)
	b := le.AppendUint32(le.AppendUint32(w.block[:0], kind), size)
	w.block = le.AppendUint32(append(b, body...), size)
	_, _ = w.out.Write(w.block)
}

func (w *writer) frame(f *frame) error {
	w.count++
	le := binary.LittleEndian
	b := w.block[:0]
	if !w.pcapng {
		b = le.AppendUint32(b, uint32(f.timeNS/1e9))
		b = le.AppendUint32(b, uint32(f.timeNS%1e9/1e3))
		b = le.AppendUint32(b, uint32(len(f.data)))
		b = append(le.AppendUint32(b, uint32(f.origin)), f.data...)
	} else {
		size := uint32(32 + (len(f.data)+3)&^3)
		b = le.AppendUint32(le.AppendUint32(b, packetBlock), size)
		b = le.AppendUint32(b, uint32(f.iface))
		b = le.AppendUint32(b, uint32(uint64(f.timeNS)>>32))
		b = le.AppendUint32(b, uint32(f.timeNS))
		b = le.AppendUint32(b, uint32(len(f.data)))
		b = append(le.AppendUint32(b, uint32(f.origin)), f.data...)
		b = append(b, make([]byte, -len(f.data)&3)...)
		b = le.AppendUint32(b, size)
	}
	w.block = b
	_, err := w.out.Write(b)
	return err
}

func (w *writer) flush() error { return w.out.Flush() }
