package capfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// Block types of pcapng, draft-ietf-opsawg-pcapng.
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockPacket     = 2 // obsolete
	blockSimple     = 3
	blockStatistics = 5
	blockEnhanced   = 6
)

// nextBlock reads blocks until one holds a packet.
func (f *File) nextBlock(r *Record) error {
	for {
		h, err := f.peek(12)
		if err != nil {
			return err
		}
		if f.order == nil || binary.LittleEndian.Uint32(h) == blockSection {
			if err := f.readSection(h); err != nil {
				return err
			}
			continue
		}
		kind, size := f.order.Uint32(h), int64(f.order.Uint32(h[4:]))
		if size < 12 || size%4 != 0 {
			return fmt.Errorf("%w: a block of %d bytes", ErrDamaged, size)
		}
		switch kind {
		case blockInterface, blockPacket, blockSimple, blockEnhanced, blockStatistics:
		default:
			if _, err := io.CopyN(io.Discard, f.in, size); err != nil {
				return cut(err)
			}
			continue
		}
		if size > maxBlockSize {
			return fmt.Errorf("%w: a block of %d bytes", ErrDamaged, size)
		}
		b, err := f.peek(int(size))
		if err != nil {
			return cut(err)
		}
		if int64(f.order.Uint32(b[size-4:])) != size {
			return fmt.Errorf("%w: a block with two lengths", ErrDamaged)
		}
		f.pending = int(size)
		packet, err := f.block(kind, b[8:size-4], r)
		if packet || err != nil {
			return err
		}
	}
}

// block reads the body of a block; true when r has been filled.
func (f *File) block(kind uint32, body []byte, r *Record) (bool, error) {
	switch kind {
	case blockInterface:
		return false, f.readInterface(body)
	case blockStatistics:
		return false, f.readStatistics(body)
	case blockSimple:
		return true, f.readSimple(body, r)
	}
	if len(body) < 20 {
		return false, fmt.Errorf("%w: a packet block of %d bytes", ErrDamaged, len(body))
	}
	id := f.order.Uint32(body)
	if kind == blockPacket {
		id = uint32(f.order.Uint16(body))
	}
	iface, err := f.iface(id)
	if err != nil {
		return false, err
	}
	time := uint64(f.order.Uint32(body[4:]))<<32 | uint64(f.order.Uint32(body[8:]))
	r.TimeNS = iface.ticks.ns(time)
	f.lastNS = r.TimeNS
	captured := int64(f.order.Uint32(body[12:]))
	if captured > int64(len(body)-20) {
		return false, fmt.Errorf("%w: a packet longer than its block", ErrDamaged)
	}
	r.Data, r.OrigLen = body[20:20+captured], int(f.order.Uint32(body[16:]))
	r.LinkType, r.Iface = iface.LinkType, f.section+int(id)
	return true, nil
}

// readSimple reads a packet without time or interface: it gets the time of
// the packet before it.
func (f *File) readSimple(body []byte, r *Record) error {
	if len(body) < 4 {
		return fmt.Errorf("%w: a packet block of %d bytes", ErrDamaged, len(body))
	}
	iface, err := f.iface(0)
	if err != nil {
		return err
	}
	orig := f.order.Uint32(body)
	captured := min(orig, uint32(len(body)-4))
	if iface.snapLen != 0 {
		captured = min(captured, iface.snapLen)
	}
	r.TimeNS, r.Data, r.OrigLen = f.lastNS, body[4:4+captured], int(orig)
	r.LinkType, r.Iface = iface.LinkType, f.section
	return nil
}

func (f *File) iface(id uint32) (*Interface, error) {
	if int64(id) >= int64(len(f.interfaces)-f.section) {
		return nil, fmt.Errorf("%w: a packet of interface %d, which is not described", ErrDamaged, id)
	}
	return &f.interfaces[f.section+int(id)], nil
}

// readSection reads a section header: it fixes the byte order, and the
// numbers of interfaces start anew.
func (f *File) readSection(h []byte) error {
	switch binary.LittleEndian.Uint32(h[8:]) {
	case 0x1a2b3c4d:
		f.order = binary.LittleEndian
	case 0x4d3c2b1a:
		f.order = binary.BigEndian
	default:
		return fmt.Errorf("%w: a section without byte order", ErrDamaged)
	}
	size := int64(f.order.Uint32(h[4:]))
	if size < 28 || size%4 != 0 {
		return fmt.Errorf("%w: a section header of %d bytes", ErrDamaged, size)
	}
	f.section = len(f.interfaces)
	_, err := io.CopyN(io.Discard, f.in, size)
	if err != nil {
		return cut(err)
	}
	return nil
}

// readInterface reads an interface description: link type, snapshot length,
// and the options if_name (2), if_tsresol (9) and if_tsoffset (14).
func (f *File) readInterface(body []byte) error {
	if len(body) < 8 {
		return fmt.Errorf("%w: an interface block of %d bytes", ErrDamaged, len(body))
	}
	if len(f.interfaces) >= 1<<16 {
		return fmt.Errorf("%w: more than 65536 interfaces", ErrDamaged)
	}
	iface := Interface{LinkType: int(f.order.Uint16(body)), snapLen: f.order.Uint32(body[4:]), ticks: decimalTicks(6)}
	offset := int64(0)
	bad := false
	f.options(body[8:], func(code uint16, value []byte) {
		switch {
		case code == 2:
			iface.Name = string(value)
		case code == 9 && len(value) == 1:
			if value[0]&0x80 != 0 {
				iface.ticks = binaryTicks(value[0] & 0x7f)
			} else {
				iface.ticks = decimalTicks(value[0])
			}
			bad = iface.ticks.perSecond == 0
		case code == 14 && len(value) == 8:
			offset = int64(f.order.Uint64(value))
		}
	})
	if bad {
		return fmt.Errorf("%w: an interface with a time resolution out of range", ErrDamaged)
	}
	iface.ticks.offsetS = offset
	f.interfaces = append(f.interfaces, iface)
	return nil
}

// readStatistics reads the number of packets that the capture lost
// (isb_ifdrop, 5).
func (f *File) readStatistics(body []byte) error {
	if len(body) < 12 {
		return fmt.Errorf("%w: a statistics block of %d bytes", ErrDamaged, len(body))
	}
	iface, err := f.iface(f.order.Uint32(body))
	if err != nil {
		return err
	}
	f.options(body[12:], func(code uint16, value []byte) {
		if code == 5 && len(value) == 8 {
			iface.Dropped = f.order.Uint64(value)
		}
	})
	return nil
}

func (f *File) options(b []byte, each func(code uint16, value []byte)) {
	for len(b) >= 4 {
		code, size := f.order.Uint16(b), int(f.order.Uint16(b[2:]))
		if code == 0 || 4+size > len(b) {
			return
		}
		each(code, b[4:4+size])
		b = b[min(len(b), 4+(size+3)&^3):]
	}
}

// ticks turns the time stamps of an interface into nanoseconds.
type ticks struct {
	perSecond uint64
	offsetS   int64
}

func decimalTicks(digits uint8) ticks {
	if digits > 19 {
		return ticks{}
	}
	t := ticks{perSecond: 1}
	for range digits {
		t.perSecond *= 10
	}
	return t
}

func binaryTicks(power uint8) ticks {
	if power > 63 {
		return ticks{}
	}
	return ticks{perSecond: 1 << power}
}

// maxSeconds is the year 2106: later stamps are damage, and are held there so
// that differences of times stay within an int64.
const maxSeconds = 1 << 32

func (t ticks) ns(stamp uint64) int64 {
	offset := min(max(t.offsetS, -maxSeconds), maxSeconds)
	seconds := int64(min(stamp/t.perSecond, 2*maxSeconds)) + offset
	high, low := bits.Mul64(stamp%t.perSecond, 1e9)
	fraction, _ := bits.Div64(high, low, t.perSecond)
	return min(max(seconds, 0), maxSeconds)*1e9 + int64(fraction)
}
