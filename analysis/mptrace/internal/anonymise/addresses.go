package anonymise

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"net"
	"net/netip"
)

// KeySize is the length of a key in bytes: 32 each for IPv4 and IPv6, and 16
// for MAC addresses.
const KeySize = 80

// mostCached bounds the number of addresses whose replacements are remembered.
const mostCached = 1 << 16

const macSize = 6

var (
	// stay4 are this host, the virtual lab (docs/virtual-lab.md), loopback,
	// multicast and broadcast. They stay, and no other address becomes one of
	// them.
	stay4          = networks("0.0.0.0/8", "10.64.0.0/14", "127.0.0.0/8", "224.0.0.0/3")
	documentation4 = networks("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
	// classes6 are reserved, global, unique local, link-local and multicast
	// addresses: an address stays in its class.
	classes6       = networks("::/8", "2000::/3", "fc00::/7", "fe80::/10", "ff00::/8")
	documentation6 = networks("2001:db8::/32", "3fff::/20")
)

// solicited is the prefix of solicited-node multicast addresses, ff02::1:ff00:0/104
// (RFC 4291 §2.7.1), and solicitedMAC that of their MAC addresses (RFC 2464 §7).
var (
	solicited    = []byte{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}
	solicitedMAC = []byte{0x33, 0x33, 0xff}
)

// byPrefix is the flag of a multicast address that contains a network prefix
// (RFC 3306 §4).
const byPrefix = 0x20

// address is an address of 4 (IPv4), 16 (IPv6) or 6 bytes (MAC).
type address struct {
	bytes [16]byte
	size  int
}

// Addresses replaces addresses by one key. It is not safe for concurrent use.
type Addresses struct {
	// Replaced, if set, is called with each address that is replaced by another
	// one, and its replacement; more than once if there are many addresses.
	Replaced func(old, replacement []byte)

	pan4, pan6 *cryptoPAn
	mac        cipher.Block
	cache      map[address]address
}

// New takes a key of KeySize bytes.
func New(key []byte) *Addresses {
	return &Addresses{
		pan4:  newCryptoPAn(key[:32], stay4),
		pan6:  newCryptoPAn(key[32:64], classes6),
		mac:   newCipher(key[64:KeySize]),
		cache: map[address]address{},
	}
}

// Replace replaces an address of 4, 16 or 6 bytes in place. Addresses that
// belong to no real network stay, for example those of loopback, multicast and
// the virtual lab.
func (a *Addresses) Replace(b []byte) {
	old := address{size: len(b)}
	copy(old.bytes[:], b)
	if known, ok := a.cache[old]; ok {
		copy(b, known.bytes[:])
		return
	}
	switch len(b) {
	case 4:
		a.ipv4(b)
	case macSize:
		a.macAddress(b)
	default:
		a.ipv6(b)
	}
	replacement := address{size: len(b)}
	copy(replacement.bytes[:], b)
	if len(a.cache) >= mostCached {
		clear(a.cache)
	}
	a.cache[old] = replacement
	if a.Replaced != nil && old != replacement {
		a.Replaced(old.bytes[:old.size], b)
	}
}

func (a *Addresses) ipv4(b []byte) {
	if !inAny(b, stay4) {
		walk(a.pan4, b, documentation4)
	}
}

func (a *Addresses) ipv6(b []byte) {
	kept := 0
	switch {
	case b[0] == 0: // IPv4-mapped, or of a translator: an IPv4 address at the end
		if !zero(b[:14]) {
			a.ipv4(b[12:])
		}
		return
	case bytes.HasPrefix(b, solicited):
		kept = 8 * len(solicited)
	case b[0] == 0xff && b[1]&byPrefix != 0:
		kept = 32
	case b[0] == 0xff:
		return
	case b[0] == 0xfe && b[1]&0xc0 == 0x80: // link-local
		kept = 64
	default:
		walk(a.pan6, b, documentation6)
		return
	}
	a.pan6.replace(b, kept)
}

// walk replaces an address, and its replacement again while that is in one of
// the given networks. Addresses in them stay. One address in 2^22 needs a second
// step, which does not preserve its prefix, and which can lead back to the address
// itself: with 1 of 10^6 keys at most for a near address, else with 1 of 10^11.
func walk(pan *cryptoPAn, b []byte, stay []network) {
	if inAny(b, stay) {
		return
	}
	for pan.replace(b, 0); inAny(b, stay); {
		pan.replace(b, 0)
	}
}

// macAddress replaces a MAC address. The bits for groups and for local
// administration stay. All 46 others stay with 1 of 2^46 keys.
func (a *Addresses) macAddress(b []byte) {
	if bytes.HasPrefix(b, solicitedMAC) {
		group := append(bytes.Clone(solicited), b[3:]...)
		a.ipv6(group)
		copy(b[3:], group[len(solicited):])
		return
	}
	if b[0]&1 != 0 || zero(b) {
		return
	}
	block := make([]byte, aes.BlockSize)
	copy(block[aes.BlockSize-macSize:], b)
	a.mac.Encrypt(block, block)
	block[0] = block[0]&^3 | b[0]&3
	copy(b, block)
}

func zero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// Parse returns the bytes of an IPv4, IPv6 or MAC address in its usual notation.
func Parse(text string) ([]byte, error) {
	if mac, err := net.ParseMAC(text); err == nil && len(mac) == macSize {
		return mac, nil
	}
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" {
		return nil, fmt.Errorf("%q is not an IPv4, IPv6 or MAC address", text)
	}
	return ip.AsSlice(), nil
}

// Format returns the usual notation of an address of 4, 16 or 6 bytes.
func Format(b []byte) string {
	if len(b) == macSize {
		return net.HardwareAddr(b).String()
	}
	ip, _ := netip.AddrFromSlice(b)
	return ip.String()
}
