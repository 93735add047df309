package model

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

const (
	tcpSYN = 0x02
	tcpACK = 0x10
)

// mss, capable and timestamps are options as in a SYN of Linux; capable is MP_CAPABLE of RFC 8684.
var (
	mss        = []byte{2, 4, 5, 0xb4}
	capable    = []byte{30, 4, 1, 1}
	join       = []byte{30, 12, 0x10, 2, 1, 2, 3, 4, 5, 6, 7, 8}
	timestamps = []byte{8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 1}
)

// tcpFrame returns a frame with a TCP segment whose checksum is right, over IPv4 or IPv6.
func tcpFrame(version int, flags byte, payload string, options ...[]byte) *Frame {
	all := slices.Concat(options...)
	segment := make([]byte, tcpHeader, tcpHeader+len(all)+len(payload))
	binary.BigEndian.PutUint16(segment, 40000)
	binary.BigEndian.PutUint16(segment[2:], 443)
	segment[12], segment[13] = byte((tcpHeader+len(all))/4)<<4, flags
	segment = append(append(segment, all...), payload...)
	var header []byte
	kind := uint16(typeIPv4)
	if version == 4 {
		header = make([]byte, 20)
		header[0], header[9] = 0x45, protocolTCP
		copy(header[12:], []byte{10, 64, 1, 2, 10, 65, 0, 1})
	} else {
		kind = typeIPv6
		header = make([]byte, 40)
		header[0], header[6], header[23], header[39] = 0x60, protocolTCP, 1, 2
	}
	binary.BigEndian.PutUint16(segment[tcpChecksumAt:], ^onesComplement(header, segment))
	data := make([]byte, VnetHeader+EthernetHeader)
	binary.BigEndian.PutUint16(data[VnetHeader+12:], kind)
	f := &Frame{Data: slices.Concat(data, header, segment)}
	f.classify(&PrefixDelays{}, SourceIsB)
	return f
}

// onesComplement returns the sum of addresses, protocol, length and segment, as 0 with the right checksum's complement.
func onesComplement(header, segment []byte) uint16 {
	addresses := header[12:20]
	if len(header) == 40 {
		addresses = header[8:40]
	}
	whole := slices.Concat(addresses, []byte{0, protocolTCP, byte(len(segment) >> 8), byte(len(segment))}, segment)
	if len(whole)%2 == 1 {
		whole = append(whole, 0)
	}
	sum := uint32(0)
	for i := 0; i < len(whole); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(whole[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

func headerOf(f *Frame) []byte {
	packet := f.Data[VnetHeader+EthernetHeader:]
	return packet[:len(packet)-len(f.tcp())]
}

func TestMultipathOptionsOfHandshakesBecomeNOPs(t *testing.T) {
	for name, c := range map[string]struct {
		version int
		flags   byte
		options [][]byte
		want    []byte
	}{
		"SYN":            {4, tcpSYN, [][]byte{mss, timestamps, capable}, slices.Concat(mss, timestamps, []byte{1, 1, 1, 1})},
		"SYN/ACK":        {4, tcpSYN | tcpACK, [][]byte{capable, mss}, slices.Concat([]byte{1, 1, 1, 1}, mss)},
		"join":           {4, tcpSYN, [][]byte{join, mss}, slices.Concat(bytes.Repeat([]byte{1}, 12), mss)},
		"IPv6":           {6, tcpSYN, [][]byte{mss, capable}, slices.Concat(mss, []byte{1, 1, 1, 1})},
		"at odd offset":  {4, tcpSYN, [][]byte{{1}, capable, {1, 1, 1}}, bytes.Repeat([]byte{1}, 8)},
		"two":            {4, tcpSYN, [][]byte{capable, capable}, bytes.Repeat([]byte{1}, 8)},
		"before the end": {4, tcpSYN, [][]byte{capable, {0, 30, 4, 1}}, []byte{1, 1, 1, 1, 0, 30, 4, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := tcpFrame(c.version, c.flags, "odd", c.options...)
			if sum := onesComplement(headerOf(f), f.tcp()); sum != 0xffff {
				t.Fatalf("the frame of the test has a wrong checksum: %#x", sum)
			}
			if !f.stripMultipath() {
				t.Error("no option was found")
			}
			segment := f.tcp()
			if got := segment[tcpHeader : len(segment)-3]; !bytes.Equal(got, c.want) {
				t.Errorf("options % x, want % x", got, c.want)
			}
			if sum := onesComplement(headerOf(f), segment); sum != 0xffff {
				t.Errorf("the sum with the checksum is %#x", sum)
			}
		})
	}
}

func TestOtherPacketsPassAMiddleboxUnchanged(t *testing.T) {
	fragment := tcpFrame(4, tcpSYN, "", capable)
	fragment.Data[VnetHeader+EthernetHeader+7] = 1
	udp := tcpFrame(4, tcpSYN, "", capable)
	udp.Data[VnetHeader+EthernetHeader+9] = 17
	short := tcpFrame(4, tcpSYN, "", capable)
	short.Data = short.Data[:len(short.Data)-2]
	for name, f := range map[string]*Frame{
		"data":          tcpFrame(4, tcpACK, "data", capable),
		"no option":     tcpFrame(4, tcpSYN, "", mss),
		"bad length":    tcpFrame(4, tcpSYN, "", []byte{8, 0, 1, 1}, capable),
		"length beyond": tcpFrame(4, tcpSYN, "", []byte{30, 9, 1, 1}),
		"ends":          tcpFrame(4, tcpSYN, "", []byte{1, 1, 1, 30}),
		"fragment":      fragment, "UDP": udp, "cut": short,
		"empty": {Data: make([]byte, VnetHeader+EthernetHeader), ip: true},
	} {
		before := slices.Clone(f.Data)
		if f.stripMultipath() || !bytes.Equal(f.Data, before) {
			t.Errorf("%s: changed", name)
		}
	}
}

func TestAnUnfinishedChecksumStays(t *testing.T) {
	f := tcpFrame(4, tcpSYN, "", capable)
	f.Data[0] = needsChecksum
	checksum := slices.Clone(f.tcp()[tcpChecksumAt : tcpChecksumAt+2])
	if !f.stripMultipath() || !bytes.Equal(f.tcp()[tcpChecksumAt:tcpChecksumAt+2], checksum) {
		t.Error("the checksum of the pseudo-header changed, or no option was found")
	}
}

func TestADirectionWithAMiddleboxStripsAndCounts(t *testing.T) {
	for middlebox, want := range map[string]uint64{"": 0, StripMultipath: 1} {
		d := NewDirection(Params{Middlebox: middlebox}, NewPrefixDelays(nil), NewChance(1, "link", "up"))
		for _, flags := range []byte{tcpSYN, tcpACK} {
			d.Arrive(0, d.NewFrame(tcpFrame(4, flags, "", capable).Data, SourceIsB))
		}
		first := d.Due(0)
		if stripped := !bytes.Contains(first.Data, capable); stripped != (want == 1) || d.CountersAt(0).Stripped != want {
			t.Errorf("middlebox %q: stripped %v, counted %d", middlebox, stripped, d.CountersAt(0).Stripped)
		}
		if second := d.Due(0); !bytes.Contains(second.Data, capable) {
			t.Errorf("middlebox %q: an option outside of the handshake is gone", middlebox)
		}
	}
}
