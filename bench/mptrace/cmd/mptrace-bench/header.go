package main

import "encoding/binary"

// header holds the offsets of the parts of a TCP segment over IPv4 in a frame.
type header struct {
	tcp, options, end int
}

const (
	etherSize = 14
	ipAt      = etherSize
)

// headers returns the offsets, or false if the frame is not TCP over IPv4.
func headers(b []byte) (header, bool) {
	if len(b) < ipAt+40 || binary.BigEndian.Uint16(b[12:]) != 0x0800 || b[ipAt+9] != 6 {
		return header{}, false
	}
	tcp := ipAt + int(b[ipAt]&15)*4
	end := tcp + int(b[tcp+12]>>4)*4
	return header{tcp, tcp + 20, end}, end <= len(b)
}

// flowKey identifies a direction of a flow: addresses and ports, as sent.
type flowKey [12]byte

func keyOf(b []byte, h header) (k flowKey) {
	copy(k[:8], b[ipAt+12:ipAt+20])
	copy(k[8:], b[h.tcp:h.tcp+4])
	return k
}

func (k flowKey) turned() (t flowKey) {
	copy(t[:4], k[4:8])
	copy(t[4:8], k[:4])
	copy(t[8:10], k[10:12])
	copy(t[10:], k[8:10])
	return t
}

// TCP flags that are used here.
const (
	flagFIN = 1
	flagSYN = 2
	flagACK = 16
)

func flagsOf(b []byte, h header) byte { return b[h.tcp+13] }

// payload returns the payload size of the frame on the wire.
func payload(f *frame, h header) int {
	return ipAt + int(binary.BigEndian.Uint16(f.data[ipAt+2:])) - h.end
}

// options calls each with the offset and size of every option.
func options(b []byte, h header, each func(at, size int)) {
	for at := h.options; at+1 < h.end && b[at] != 0; {
		if b[at] == 1 {
			at++
			continue
		}
		size := int(b[at+1])
		if size < 2 || at+size > h.end {
			return
		}
		each(at, size)
		at += size
	}
}

// TCP options and MPTCP subtypes.
const (
	optionSACK  = 5
	optionStamp = 8
	optionMPTCP = 30

	subCapable   = 0
	subJoin      = 1
	subDSS       = 2
	subAddAddr   = 3
	subFail      = 6
	subFastclose = 7
	subReset     = 8

	dssAck   = 1
	dssAck64 = 2
	dssMap   = 4
	dssMap64 = 8
)

// dss holds the offsets of the numbers in a data sequence signal, from the
// start of the option; 0: absent.
type dss struct {
	ack, dsn, ssn int
	ack64, dsn64  bool
}

func dssOf(option []byte) (d dss) {
	flags, at := option[3], 4
	if flags&dssAck != 0 {
		d.ack, d.ack64 = at, flags&dssAck64 != 0
		at += 4
		if d.ack64 {
			at += 4
		}
	}
	if flags&dssMap != 0 {
		d.dsn, d.dsn64 = at, flags&dssMap64 != 0
		at += 4
		if d.dsn64 {
			at += 4
		}
		d.ssn = at
	}
	return d
}

// number reads a field of 4 or 8 bytes.
func number(b []byte, wide bool) uint64 {
	if wide {
		return binary.BigEndian.Uint64(b)
	}
	return uint64(binary.BigEndian.Uint32(b))
}

// relative reads a data sequence number as the distance from the first byte of
// data. It extends a number of 4 bytes to the value closest to seen.
func relative(b []byte, wide bool, idsn, seen uint64) uint64 {
	if wide {
		return number(b, true) - idsn - 1
	}
	near := idsn + 1 + seen
	return seen + uint64(int64(int32(binary.BigEndian.Uint32(b)-uint32(near))))
}

// reseal recomputes the checksum of the IP header.
func reseal(b []byte, h header) {
	binary.BigEndian.PutUint16(b[ipAt+10:], 0)
	sum := uint32(0)
	for at := ipAt; at < h.tcp; at += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[at:]))
	}
	sum = sum>>16 + sum&0xffff
	sum += sum >> 16
	binary.BigEndian.PutUint16(b[ipAt+10:], ^uint16(sum))
}
