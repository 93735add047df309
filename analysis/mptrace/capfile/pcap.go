package capfile

import (
	"io"
)

// Header sizes in bytes: of a pcap file, of a record, and of a record in the
// modified format of Alexey Kuznetzov's libpcap, which adds interface and
// protocol.
const (
	fileHeader     = 24
	recordHeader   = 16
	modifiedHeader = 24
)

// openPcap reads the file header: magic, version, two unused words, snapshot
// length, link type.
func (f *File) openPcap(magic [4]byte) error {
	var header [fileHeader]byte
	copy(header[:], magic[:])
	if _, err := io.ReadFull(f.in, header[len(magic):]); err != nil {
		return cut(err)
	}
	f.swap = magic[0] == 0xa1
	f.Format, f.walk, f.header = "pcap", (*File).walkPcap, recordHeader
	digits := uint8(6)
	switch u32(magic[:], f.swap) {
	case 0xa1b23c4d:
		digits = 9
	case 0xa1b2cd34:
		f.header = modifiedHeader
	}
	f.interfaces = []Interface{{
		Name:     interfaceOfName(f.Name),
		LinkType: int(u32(header[20:], f.swap) & 0x0fffffff), // the top bits describe the FCS
		clock:    decimalClock(digits),
	}}
	return nil
}

// walkPcap reads records: seconds, fraction, captured length, original length.
func (f *File) walkPcap(b *Batch, buffer []byte) (used int, err error) {
	swap, header, scale := f.swap, f.header, int64(f.interfaces[0].clock.scale)
	n, records := len(b.Records), b.Records[:cap(b.Records)]
	for f.need = header; len(buffer)-used >= recordHeader; {
		h := (*[recordHeader]byte)(buffer[used:])
		captured := u32(h[8:12], swap)
		if captured > maxFrame {
			err = damaged("a frame of %d bytes", captured)
			break
		}
		end := used + header + int(captured)
		if end > len(buffer) {
			f.need = end - used
			break
		}
		if n == len(records) {
			records = moreRecords(records)
		}
		r := &records[n]
		r.TimeNS = int64(u32(h[0:4], swap))*1e9 + int64(u32(h[4:8], swap))*scale
		r.Data = buffer[used+header : end]
		r.OrigLen, r.Iface = u32(h[12:16], swap), 0
		n++
		used = end
	}
	b.Records = records[:n]
	return used, err
}
