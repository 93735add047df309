package capfile

import (
	"bytes"
	"encoding/binary"
)

// Bounds for the number of interfaces in a file, over all sections, and for the
// length of an interface name.
const (
	maxInterfaces = 1 << 16
	maxName       = 256
)

// Options of pcapng that are read.
const (
	optionEnd      = 0
	optionName     = 2  // if_name
	optionDropped  = 5  // isb_ifdrop
	optionTicks    = 9  // if_tsresol
	optionTimeZero = 14 // if_tsoffset
)

// readSection reads the start of a section header. It sets the byte order and
// restarts the numbering of interfaces.
func (f *File) readSection(block []byte) error {
	switch binary.LittleEndian.Uint32(block[8:]) {
	case 0x1a2b3c4d:
		f.swap = false
	case 0x4d3c2b1a:
		f.swap = true
	default:
		return damaged("a section without byte order")
	}
	if size := u32(block[4:], f.swap); size < 28 {
		return damaged("a section header of %d bytes", size)
	}
	f.section = int32(len(f.interfaces))
	return nil
}

// readInterface reads an interface description: link type, snapshot length,
// name, and resolution and offset of its clock.
func (f *File) readInterface(body []byte) error {
	if len(body) < 8 {
		return damaged("an interface block of %d bytes", len(body))
	}
	if len(f.interfaces) >= maxInterfaces {
		return damaged("more than %d interfaces", maxInterfaces)
	}
	iface := Interface{LinkType: int(u16(body, f.swap)), snapLen: u32(body[4:], f.swap), clock: decimalClock(6)}
	var offsetS int64
	f.options(body[8:], func(code uint16, value []byte) {
		switch {
		case code == optionName:
			iface.Name = string(bytes.TrimRight(value[:min(len(value), maxName)], "\x00"))
		case code == optionTicks && len(value) == 1 && value[0]&0x80 == 0:
			iface.clock = decimalClock(value[0])
		case code == optionTicks && len(value) == 1:
			iface.clock = binaryClock(value[0] & 0x7f)
		case code == optionTimeZero && len(value) == 8:
			offsetS = int64(u64(value, f.swap))
		}
	})
	if iface.clock.perSecond == 0 {
		return damaged("an interface with a time resolution out of range")
	}
	iface.clock.shift(offsetS)
	f.interfaces = append(f.interfaces, iface)
	return nil
}

// readStatistics reads the number of packets that the capture lost.
func (f *File) readStatistics(body []byte) error {
	if len(body) < 12 {
		return damaged("a statistics block of %d bytes", len(body))
	}
	iface, err := f.iface(u32(body, f.swap))
	if err != nil {
		return err
	}
	f.options(body[12:], func(code uint16, value []byte) {
		if code == optionDropped && len(value) == 8 {
			iface.Dropped = u64(value, f.swap)
		}
	})
	return nil
}

func (f *File) options(b []byte, each func(code uint16, value []byte)) {
	for len(b) >= 4 {
		code, size := u16(b, f.swap), int(u16(b[2:], f.swap))
		if code == optionEnd || 4+size > len(b) {
			return
		}
		each(code, b[4:4+size])
		b = b[min(len(b), 4+(size+3)&^3):]
	}
}
