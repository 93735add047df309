package model

import (
	"encoding/binary"
	"slices"
)

// StripMultipath is the name of a middlebox that removes the options of Multipath TCP from handshakes: it overwrites
// them with NOP options in segments with SYN, as middleboxes do that do not know an option (RFC 6824 §4.1).
const StripMultipath = "strip-mptcp"

// MiddleboxNames returns the names of all middleboxes.
func MiddleboxNames() []string { return []string{StripMultipath} }

const (
	needsChecksum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM: the TCP checksum covers the pseudo-header only

	tcpHeader     = 20 // without options
	tcpFlagSYN    = 0x02
	tcpChecksumAt = 16

	optionEnd       = 0
	optionNOP       = 1
	optionMultipath = 30 // RFC 8684 §3
)

// stripMultipath overwrites the Multipath TCP options of a TCP segment with SYN by NOPs, and corrects its checksum. It
// reports whether there was one.
func (f *Frame) stripMultipath() bool {
	segment := f.tcp()
	if len(segment) < tcpHeader || segment[13]&tcpFlagSYN == 0 {
		return false
	}
	end := int(segment[12]>>4) * 4
	if end < tcpHeader || end > len(segment) {
		return false
	}
	options := segment[tcpHeader:end]
	before := slices.Clone(options)
	if !overwrite(options, optionMultipath) {
		return false
	}
	if f.Data[0]&needsChecksum == 0 {
		checksum := segment[tcpChecksumAt : tcpChecksumAt+2]
		binary.BigEndian.PutUint16(checksum, corrected(binary.BigEndian.Uint16(checksum), before, options))
	}
	return true
}

// overwrite replaces all options of a kind by NOPs. Options after a malformed one stay. It reports whether there was an
// option of this kind.
func overwrite(options []byte, kind byte) bool {
	some := false
	for at := 0; at < len(options) && options[at] != optionEnd; {
		if options[at] == optionNOP {
			at++
			continue
		}
		if at+1 >= len(options) {
			break
		}
		size := int(options[at+1])
		if size < 2 || at+size > len(options) {
			break
		}
		if options[at] == kind {
			some = true
			for i := range size {
				options[at+i] = optionNOP
			}
		}
		at += size
	}
	return some
}

// corrected returns an Internet checksum after a change of an even number of bytes at an even offset (RFC 1624 §3).
func corrected(checksum uint16, before, after []byte) uint16 {
	sum := uint32(^checksum)
	for i := 0; i+1 < len(before); i += 2 {
		sum += uint32(^binary.BigEndian.Uint16(before[i:])) + uint32(binary.BigEndian.Uint16(after[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// tcp returns the TCP segment of a frame; nil: it has none, or only a later fragment of one, or IPv6 extension headers.
func (f *Frame) tcp() []byte {
	if !f.ip {
		return nil
	}
	packet := f.Data[VnetHeader+EthernetHeader:]
	switch {
	case len(packet) >= 20 && packet[0]>>4 == 4:
		header := int(packet[0]&0xf) * 4
		fragment := binary.BigEndian.Uint16(packet[6:]) & 0x1fff
		if packet[9] != protocolTCP || fragment != 0 || header < 20 || header > len(packet) {
			return nil
		}
		return packet[header:]
	case len(packet) >= 40 && packet[0]>>4 == 6 && packet[6] == protocolTCP:
		return packet[40:]
	}
	return nil
}
