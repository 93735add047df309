package anonymise

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"mplab/analysis/mptrace/packet"
)

const (
	client = "10.1.0.1"
	server = "185.60.216.35"
)

// bytesOf reads hexadecimal digits with spaces.
func bytesOf(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ipv4 returns a packet from client to server without header checksum.
func ipv4(t testing.TB, protocol byte, body []byte) []byte {
	t.Helper()
	b := []byte{0x45, 0, 0, byte(20 + len(body)), 0, 0, 0, 0, 64, protocol, 0, 0}
	return append(append(append(b, parse(t, client)...), parse(t, server)...), body...)
}

// segment returns a TCP segment with options, whose length is a multiple of 4.
func segment(options, payload []byte) []byte {
	b := []byte{0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, byte(5+len(options)/4) << 4, 16, 0, 5, 0, 0, 0, 0}
	return append(append(b, options...), payload...)
}

// anonymised returns the replaced frame.
func anonymised(t testing.TB, linkType int, frame []byte) []byte {
	t.Helper()
	f := bytes.Clone(frame)
	if err := New(key()).Frame(linkType, f); err != nil {
		t.Fatal(err)
	}
	return f
}

// pseudoSum returns the sum of the pseudo header of a TCP segment in IPv4.
func pseudoSum(ip []byte) int { return sum(ip[12:20]) + protoTCP + len(ip) - 20 }

// tcpSum is 0 if the checksum of a TCP segment in IPv4 is correct.
func tcpSum(ip []byte) int {
	return modulo(pseudoSum(ip) + sum(append(bytes.Clone(ip[20:]), make([]byte, len(ip)%2)...)))
}

func TestContentIsRemoved(t *testing.T) {
	secret := append([]byte{0, 53, 0, 53, 0, 8, 0, 0}, "secret"...)
	inside := ipv4(t, protoUDP, secret)
	if got := anonymised(t, packet.LinkRaw, inside)[20:]; !bytes.Equal(got, append(secret[:6:6], make([]byte, 8)...)) {
		t.Errorf("UDP: % x", got)
	}
	unreachable := ipv4(t, protoICMP, append([]byte{3, 1, 0x12, 0x34, 0, 0, 5, 0x78}, inside...))
	if got, want := anonymised(t, packet.LinkRaw, unreachable)[20:], append([]byte{3, 1, 0, 0, 0, 0, 5, 0x78}, make([]byte, len(inside))...); !bytes.Equal(got, want) {
		t.Errorf("ICMP: % x", got)
	}
	redirect := ipv4(t, protoICMP, append(append([]byte{5, 1, 0x12, 0x34}, parse(t, server)...), inside...))
	if got := anonymised(t, packet.LinkRaw, redirect); Format(got[24:28]) != mapped(t, server) || !zero(got[28:]) {
		t.Errorf("redirect: % x", got)
	}
	lldp := anonymised(t, packet.LinkEthernet, append(bytesOf(t, "0180c200000e ac37431b2c3d 88cc"), "name of a switch"...))
	if Format(lldp[6:12]) != mapped(t, "ac:37:43:1b:2c:3d") || Format(lldp[:6]) != "01:80:c2:00:00:0e" || !zero(lldp[14:]) {
		t.Errorf("LLDP: % x", lldp)
	}
}

func TestLinkTypes(t *testing.T) {
	ip := ipv4(t, 255, nil)
	replaced := anonymised(t, packet.LinkRaw, ip)
	mac, newMAC := "ac37431b2c3d", strings.ReplaceAll(mapped(t, "ac:37:43:1b:2c:3d"), ":", "")
	for _, c := range []struct {
		name          string
		linkType      int
		header, after string
	}{
		{"raw", packet.LinkIPv4, "", ""},
		{"null", packet.LinkNull, "02000000", "02000000"},
		{"loop", packet.LinkLoop, "00000002", "00000002"},
		{"Ethernet", packet.LinkEthernet, mac + mac + "0800", newMAC + newMAC + "0800"},
		{"VLAN", packet.LinkEthernet, mac + mac + "88a80001 81000002 0800", newMAC + newMAC + "88a80001 81000002 0800"},
		{"PPPoE", packet.LinkEthernet, mac + mac + "8864 110000010000 0021", newMAC + newMAC + "8864 110000010000 0021"},
		{"SLL", packet.LinkSLL, "0000 0001 0006" + mac + "abcd 0800", "0000 0001 0006" + newMAC + "0000 0800"},
		{"SLL without address", packet.LinkSLL, "0000 0001 0008" + mac + "abcd 0800", "0000 0001 0008 0000000000000000 0800"},
		{"SLL2", packet.LinkSLL2, "0800 0000 00000003 0001 00 06" + mac + "abcd", "0800 0000 00000003 0001 00 06" + newMAC + "0000"},
		{"PPP", packet.LinkPPP, "ff03 0021", "ff03 0021"},
		{"PPP with direction", packet.LinkPPPWithDir, "01 21", "01 21"},
		{"HDLC", packet.LinkPPPSerial, "0f00 0800", "0f00 0800"},
	} {
		got := anonymised(t, c.linkType, append(bytesOf(t, c.header), ip...))
		if want := append(bytesOf(t, c.after), replaced...); !bytes.Equal(got, want) {
			t.Errorf("%s: % x\nwant % x", c.name, got, want)
		}
	}
	for name, c := range map[string]struct {
		linkType int
		header   string
		kept     int
	}{
		"another family":    {packet.LinkNull, "10000000", 4},
		"IPCP":              {packet.LinkPPP, "ff03 8021", 2},
		"unknown EtherType": {packet.LinkEthernet, "000000000000 000000000000 1234", 14},
	} {
		frame := append(bytesOf(t, c.header), ip...)
		if got := anonymised(t, c.linkType, frame); !bytes.Equal(got[:c.kept], frame[:c.kept]) || !zero(got[c.kept:]) {
			t.Errorf("%s: % x", name, got)
		}
	}
	if err := New(key()).Frame(127, ip); err == nil {
		t.Error("an unknown link type was accepted")
	}
}

func TestARP(t *testing.T) {
	mac, ip := parse(t, "ac:37:43:1b:2c:3d"), parse(t, server)
	arp := append(bytesOf(t, "000000000000 000000000000 0806 0001 0800 06 04 0001"), mac...)
	arp = append(append(append(append(arp, ip...), make([]byte, 6)...), ip...), "padding"...)
	got := anonymised(t, packet.LinkEthernet, arp)
	if Format(got[22:28]) != mapped(t, Format(mac)) || Format(got[28:32]) != mapped(t, server) ||
		Format(got[38:42]) != mapped(t, server) || !zero(got[42:]) {
		t.Errorf("% x", got)
	}
	arp[18] = 8 // length of a hardware address
	if got := anonymised(t, packet.LinkEthernet, arp); !zero(got[22:]) {
		t.Errorf("% x", got)
	}
}

func TestIPv6(t *testing.T) {
	addresses := append(parse(t, "2a02:a03f:8d7a:1::17"), parse(t, "fe80::ae37:43ff:fe1b:2c3d")...)
	udp := bytesOf(t, "0035 0035 0010 abcd 0102030405060708")
	extensions := bytesOf(t, "2b 00 0102 01020000 2c 01 02 01 09090909 20010db800000001 11 00 0001 12345678")
	ip := append(append(append(bytesOf(t, "60000000 0028 00 40"), addresses...), extensions...), udp...)
	got := anonymised(t, packet.LinkIPv6, ip)
	want := append(bytesOf(t, "2b 00 0000 00000000 2c 01 02 01 00000000 0000000000000000 11 00 0001 12345678"),
		bytesOf(t, "0035 0035 0010 0000 0000000000000000")...)
	if Format(got[8:24]) != mapped(t, "2a02:a03f:8d7a:1::17") || !bytes.Equal(got[40:], want) {
		t.Errorf("% x\nwant % x", got[40:], want)
	}
}

// TestTunnels: addresses of packets in packets are replaced, however deep.
func TestTunnels(t *testing.T) {
	ip := ipv4(t, 255, []byte("payload"))
	for range 5 {
		ip = ipv4(t, protoIPv4, ip)
	}
	got := anonymised(t, packet.LinkRaw, ip)
	for at := 0; at < 120; at += 20 {
		if Format(got[at+16:at+20]) != mapped(t, server) {
			t.Errorf("% x", got[at:at+20])
		}
	}
	if !zero(got[120:]) {
		t.Errorf("% x", got[120:])
	}
	deep := bytes.Repeat(ipv4(t, protoIPv4, nil), 20000)
	if got := anonymised(t, packet.LinkRaw, deep); bytes.Contains(got, parse(t, server)) {
		t.Error("an address stayed")
	}
}

// TestAddAddr: the HMAC would reveal the address, and so would a wrong checksum.
func TestAddAddr(t *testing.T) {
	option := append(append([]byte{0x1e, 16, 0x30, 2}, parse(t, server)...), 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa)
	ip := ipv4(t, protoTCP, segment(option, nil))
	binary.BigEndian.PutUint16(ip[36:], 0xbeef)
	got := anonymised(t, packet.LinkRaw, ip)
	if !bytes.Equal(got[40:44], option[:4]) || Format(got[44:48]) != mapped(t, server) || !zero(got[48:]) || !zero(got[36:38]) {
		t.Errorf("% x", got)
	}
	binary.BigEndian.PutUint16(ip[36:], 0)
	binary.BigEndian.PutUint16(ip[36:], uint16(0xffff-tcpSum(ip)))
	if got := anonymised(t, packet.LinkRaw, ip); tcpSum(ip) != 0 || tcpSum(got) != 0 || zero(got[36:38]) {
		t.Errorf("% x", got)
	}
}

func TestOptions(t *testing.T) {
	for before, after := range map[string]string{
		"020405b4 01 030307 0402 080a 0102030405060708 00 0000": "",
		"01 01 05 0a 0102030405060708":                          "",
		"1e0c 0081 0102030405060708":                            "",
		"1e08 3101 b93cd823":                                    "1e08 3101 " + hex.EncodeToString(parse(t, mapped(t, server))),
		"1e07 3101 b93cd8 01":                                   "1e07 3000 000000 01",                        // no form of ADD_ADDR
		"1c04 1234 0101 0101":                                   "1c04 0000 0101 0101",                        // user timeout
		"0208 05b4 73656372":                                    "0208 0000 00000000",                         // no maximum segment size
		"00 736563726574 00":                                    "00 000000000000 00",                         // behind the end of the options
		"02 09 05b4 7365 6372":                                  "00 00 0000 0000 0000",                       // longer than the header
		"1314 0102030405060708090a0b0c0d0e0f10 1112":            "1314 00000000000000000000000000000000 0000", // signature
	} {
		if after == "" {
			after = before
		}
		got := anonymised(t, packet.LinkRaw, ipv4(t, protoTCP, segment(bytesOf(t, before), []byte("payload"))))
		if want := append(bytesOf(t, after), make([]byte, 7)...); !bytes.Equal(got[40:], want) {
			t.Errorf("%s became % x", before, got[40:])
		}
	}
}

// TestPartialChecksum: a sum that a network card would have completed stays
// partial.
func TestPartialChecksum(t *testing.T) {
	ip := ipv4(t, protoTCP, segment(nil, []byte("content")))
	binary.BigEndian.PutUint16(ip[36:], uint16(modulo(pseudoSum(ip))))
	got := anonymised(t, packet.LinkRaw, ip)
	if int(binary.BigEndian.Uint16(got[36:])) != modulo(pseudoSum(got)) || !zero(got[40:]) {
		t.Errorf("% x", got)
	}
}

// TestTrustedChecksum: if payload was not captured, the checksum is taken as
// correct, and stays so for the same payload.
func TestTrustedChecksum(t *testing.T) {
	ip := ipv4(t, protoTCP, segment(nil, []byte("contents")))
	binary.BigEndian.PutUint16(ip[36:], uint16(0xffff-tcpSum(ip)))
	got := anonymised(t, packet.LinkRaw, ip[:40])
	if whole := append(got, "contents"...); tcpSum(ip) != 0 || tcpSum(whole) != 0 {
		t.Errorf("% x", got)
	}
}

func TestHeaderChecksum(t *testing.T) {
	wrong := ipv4(t, 255, nil)
	if got := anonymised(t, packet.LinkRaw, wrong); !zero(got[10:12]) {
		t.Errorf("% x", got)
	}
	binary.BigEndian.PutUint16(wrong[10:], uint16(0xffff-modulo(sum(wrong))))
	if got := anonymised(t, packet.LinkRaw, wrong); modulo(sum(got)) != 0 || zero(got[10:12]) {
		t.Errorf("% x", got)
	}
}

// TestShortFrames: a frame that ends anywhere keeps no part of an address.
func TestShortFrames(t *testing.T) {
	frame := append(bytesOf(t, "ac37431b2c3d ac37431b2c3d 0800"), ipv4(t, protoTCP, segment(bytesOf(t, "020405b4"), nil))...)
	for size := range frame {
		got := anonymised(t, packet.LinkEthernet, frame[:size])
		for _, a := range []struct{ start, size int }{{0, 6}, {6, 6}, {26, 4}, {30, 4}} {
			end := min(a.start+a.size, size)
			if a.start < end && end-a.start < a.size && !zero(got[a.start:end]) {
				t.Errorf("%d bytes: % x", size, got)
			}
		}
	}
}
