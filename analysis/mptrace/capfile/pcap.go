package capfile

import (
	"encoding/binary"
	"fmt"
	"io"
)

// maxFrame is the longest frame that a record is believed to hold; pcap
// itself stops at 262144 bytes.
const maxFrame = 1 << 19

// openPcap reads the file header: magic, version, two unused words, snapshot
// length, link type.
func (f *File) openPcap(order binary.ByteOrder, digits uint8) error {
	header := f.header[:24]
	if _, err := io.ReadFull(f.in, header); err != nil {
		return cut(err)
	}
	f.Format, f.order, f.next = "pcap", order, f.nextPcap
	f.interfaces = []Interface{{
		Name:     interfaceOfName(f.Name),
		LinkType: int(order.Uint32(header[20:]) & 0x0fffffff), // the top bits describe the FCS
		ticks:    decimalTicks(digits),
	}}
	return nil
}

// nextPcap reads one record: seconds, fraction, captured and original length.
func (f *File) nextPcap(r *Record) error {
	h, err := f.peek(16)
	if err != nil {
		return err
	}
	captured, orig := f.order.Uint32(h[8:]), f.order.Uint32(h[12:])
	if captured > maxFrame {
		return fmt.Errorf("%w: a frame of %d bytes", ErrDamaged, captured)
	}
	iface := &f.interfaces[0]
	r.TimeNS = int64(f.order.Uint32(h))*1e9 + int64(f.order.Uint32(h[4:]))*int64(1e9/iface.ticks.perSecond)
	size := 16 + int(captured)
	b, err := f.peek(size)
	if err != nil {
		return cut(err)
	}
	f.pending = size
	r.Data, r.OrigLen, r.LinkType, r.Iface = b[16:], int(orig), iface.LinkType, 0
	return nil
}
