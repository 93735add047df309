package capfile

import "encoding/binary"

// Block types of pcapng, draft-ietf-opsawg-pcapng.
const (
	blockSection    = 0x0a0d0d0a // the same in both byte orders
	blockInterface  = 1
	blockPacket     = 2 // obsolete
	blockSimple     = 3
	blockStatistics = 5
	blockEnhanced   = 6
)

const (
	minBlock    = 12 // type, length, length
	minEnhanced = 32
)

// walkPcapng reads blocks.
func (f *File) walkPcapng(b *Batch, buffer []byte) (used int, err error) {
	for {
		used += f.walkEnhanced(b, buffer[used:])
		left := buffer[used:]
		if len(left) < minBlock {
			f.need = minBlock
			return used, nil
		}
		n, err := f.readBlock(b, left)
		if n == 0 || err != nil {
			return used, err
		}
		used += n
	}
}

// walkEnhanced reads consecutive enhanced packet blocks that are complete,
// valid and little endian: almost all blocks of a file. Their parts are type,
// length, interface, time in two halves, captured length, original length,
// frame, options, length. It stops at the first other block, which readBlock
// handles.
func (f *File) walkEnhanced(b *Batch, buffer []byte) (used int) {
	if f.swap {
		return 0
	}
	interfaces := f.interfaces[f.section:]
	n, records := len(b.Records), b.Records[:cap(b.Records)]
	for len(buffer)-used >= minEnhanced {
		h := (*[28]byte)(buffer[used:])
		size, captured := binary.LittleEndian.Uint32(h[4:8]), binary.LittleEndian.Uint32(h[20:24])
		id := binary.LittleEndian.Uint32(h[8:12])
		end := used + int(size)
		if binary.LittleEndian.Uint32(h[0:4]) != blockEnhanced || size < minEnhanced || size&3 != 0 || end > len(buffer) ||
			captured > size-minEnhanced || uint64(id) >= uint64(len(interfaces)) || binary.LittleEndian.Uint32(buffer[end-4:]) != size {
			break
		}
		if n == len(records) {
			records = moreRecords(records)
		}
		stamp := uint64(binary.LittleEndian.Uint32(h[12:16]))<<32 | uint64(binary.LittleEndian.Uint32(h[16:20]))
		r := &records[n]
		r.TimeNS = interfaces[id].clock.ns(stamp)
		r.Data = buffer[used+28 : used+28+int(captured)]
		r.OrigLen = binary.LittleEndian.Uint32(h[24:28])
		r.Iface = f.section + int32(id)
		n++
		used = end
	}
	if b.Records = records[:n]; n > 0 {
		f.lastNS = records[n-1].TimeNS
	}
	return used
}

// readBlock reads a block of any type and returns its length, or 0 if the block
// is incomplete.
func (f *File) readBlock(b *Batch, left []byte) (int, error) {
	kind := u32(left, f.swap)
	if kind == blockSection {
		if err := f.readSection(left); err != nil {
			return 0, err
		}
	}
	size := u32(left[4:], f.swap)
	if size < minBlock || size%4 != 0 {
		return 0, damaged("a block of %d bytes", size)
	}
	switch kind {
	case blockInterface, blockPacket, blockSimple, blockEnhanced, blockStatistics:
	default:
		return f.skipBlock(int64(size), len(left)), nil
	}
	if size > maxBlock {
		return 0, damaged("a block of %d bytes", size)
	}
	if int(size) > len(left) {
		f.need = int(size)
		return 0, nil
	}
	if u32(left[size-4:], f.swap) != size {
		return 0, damaged("a block with two lengths")
	}
	var err error
	switch body := left[8 : size-4]; kind {
	case blockInterface:
		err = f.readInterface(body)
	case blockStatistics:
		err = f.readStatistics(body)
	case blockSimple:
		err = f.readSimple(b, body)
	default:
		err = f.readPacket(b, kind, body)
	}
	return int(size), err
}

// skipBlock skips a block, including bytes that have not been read yet.
func (f *File) skipBlock(size int64, have int) int {
	n := min(size, int64(have))
	f.skip = size - n
	return int(n)
}

// readPacket reads an enhanced or an obsolete packet block.
func (f *File) readPacket(b *Batch, kind uint32, body []byte) error {
	if len(body) < 20 {
		return damaged("a packet block of %d bytes", len(body))
	}
	id := u32(body, f.swap)
	if kind == blockPacket {
		id = uint32(u16(body, f.swap))
	}
	iface, err := f.iface(id)
	if err != nil {
		return err
	}
	captured := u32(body[12:], f.swap)
	if uint64(captured) > uint64(len(body)-20) {
		return damaged("a packet longer than its block")
	}
	f.lastNS = iface.clock.ns(uint64(u32(body[4:], f.swap))<<32 | uint64(u32(body[8:], f.swap)))
	b.Records = append(b.Records, Record{f.lastNS, body[20 : 20+captured], u32(body[16:], f.swap), f.section + int32(id)})
	return nil
}

// readSimple reads a packet without time and interface. The packet gets the
// time of the packet before it.
func (f *File) readSimple(b *Batch, body []byte) error {
	if len(body) < 4 {
		return damaged("a packet block of %d bytes", len(body))
	}
	iface, err := f.iface(0)
	if err != nil {
		return err
	}
	orig := u32(body, f.swap)
	captured := min(orig, uint32(len(body)-4))
	if iface.snapLen != 0 {
		captured = min(captured, iface.snapLen)
	}
	b.Records = append(b.Records, Record{f.lastNS, body[4 : 4+captured], orig, f.section})
	return nil
}

func (f *File) iface(id uint32) (*Interface, error) {
	if uint64(id) >= uint64(len(f.interfaces)-int(f.section)) {
		return nil, damaged("a packet of interface %d, which is not described", id)
	}
	return &f.interfaces[int(f.section)+int(id)], nil
}
