package anonymise

// pseudo is the input of the TCP checksum from an IP header (RFC 9293 §3.1): the
// sums of the addresses before and after their replacement, and the length of
// the segment in bytes, which can be negative in a damaged packet.
type pseudo struct{ old, replaced, size int }

// checksum returns the checksum of a segment with a new header, or 0 if the old
// checksum is 0 or wrong, or if the header is longer than the segment. A partial
// sum for checksum offload stays partial. If payload was not captured, the old
// checksum is trusted. old and replaced are the sums of the header, of the given
// length, without its checksum.
func (p pseudo) checksum(value, header, old, replaced int) uint16 {
	rest := protoTCP + p.size
	switch {
	case p.size < header, value == 0:
		return 0
	case modulo(value-rest-p.old) == 0: // checksum offload: only the pseudo header was summed
		return uint16(modulo(value + p.replaced - p.old))
	case p.size == header && modulo(value+rest+p.old+old) != 0:
		return 0
	}
	return uint16(0xffff - modulo(-value+p.replaced+replaced-p.old-old))
}

// sum returns the sum of 16-bit words, of which b has an integral number.
func sum(b []byte) int {
	total := 0
	for i := 0; i+1 < len(b); i += 2 {
		total += int(b[i])<<8 | int(b[i+1])
	}
	return total
}

// modulo returns the residue of a sum in ones' complement arithmetic, 0 to
// 0xfffe.
func modulo(n int) int { return (n%0xffff + 0xffff) % 0xffff }
