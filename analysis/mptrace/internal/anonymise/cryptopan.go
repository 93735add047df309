package anonymise

import (
	"crypto/aes"
	"crypto/cipher"
	"math/bits"
	"net/netip"
)

// network is an address range.
type network struct {
	start []byte
	bits  int // length of the prefix
}

func networks(prefixes ...string) []network {
	all := make([]network, len(prefixes))
	for i, text := range prefixes {
		prefix := netip.MustParsePrefix(text)
		all[i] = network{prefix.Addr().AsSlice(), prefix.Bits()}
	}
	return all
}

// common returns the number of leading bits that an address shares with the
// first address of the network.
func (n network) common(address []byte) int {
	for i, b := range address {
		if other := b ^ n.start[i]; other != 0 {
			return i*8 + bits.LeadingZeros8(other)
		}
	}
	return len(address) * 8
}

func inAny(address []byte, all []network) bool {
	for _, n := range all {
		if n.common(address) >= n.bits {
			return true
		}
	}
	return false
}

// cryptoPAn replaces addresses of up to 16 bytes: two that share exactly their
// first n bits share exactly n bits afterwards (Xu, Fan, Ammar and Moon, ICNP
// 2002, with AES-128). Whoever knows some of the real addresses can infer
// prefixes of others.
//
// Crypto-PAn can replace an address by itself or by a near one: each bit stays
// with probability 0.75 if the bit before it stayed, because the input of the
// cipher is often the same. Here an address never keeps the first half of the
// bits that can change: if all before the middle one stayed, the middle one
// changes. That depends on the bits before it only, so prefixes are still shared.
type cryptoPAn struct {
	block cipher.Block
	pad   [aes.BlockSize]byte
	// kept are networks whose prefixes stay, and into which no other address is
	// mapped: an address outside of such a network keeps the bits that both
	// share and the first bit that differs.
	kept []network
}

// newCryptoPAn takes a key of 32 bytes: 16 for the cipher, 16 for the padding.
func newCryptoPAn(key []byte, kept []network) *cryptoPAn {
	c := &cryptoPAn{block: newCipher(key[:16]), kept: kept}
	c.block.Encrypt(c.pad[:], key[16:32])
	return c
}

// newCipher takes a key of 16 bytes.
func newCipher(key []byte) cipher.Block {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // for keys of another length only
	}
	return block
}

// replace replaces an address in place. Its first bits, kept or more, stay.
func (c *cryptoPAn) replace(address []byte, kept int) {
	input, output := c.pad, make([]byte, aes.BlockSize)
	kept = max(kept, c.keptBits(address))
	middle, changed := (kept+len(address)*8)/2, false
	for bit := range len(address) * 8 {
		at, mask := bit/8, byte(0x80)>>(bit%8)
		old := address[at] & mask
		if bit >= kept {
			c.block.Encrypt(output, input[:])
			if output[0]&0x80 != 0 || bit == middle && !changed {
				address[at] ^= mask
				changed = true
			}
		}
		input[at] = input[at]&^mask | old
	}
}

// keptBits returns the number of leading bits that stay.
func (c *cryptoPAn) keptBits(address []byte) int {
	kept := 0
	for _, n := range c.kept {
		kept = max(kept, min(n.bits, n.common(address)+1))
	}
	return kept
}
