package packet

import (
	"bytes"
	"encoding/binary"
	"testing"
)

const (
	outer4 = `
	45 00 00 00  00 01 00 00  40 11 00 00        # IPv4: total length set by tunnelled, UDP
	c0 00 02 01  c0 00 02 02`
	outer6 = `
	60 00 00 00  00 00 11 40                     # IPv6: payload length set by tunnelled, UDP
	20 01 0d b8 00 00 00 00  00 00 00 00 00 00 00 01
	20 01 0d b8 00 00 00 00  00 00 00 00 00 00 00 02`
	innerTCP = `
	45 00 00 28  12 34 40 00  40 06 00 00        # IPv4: total length 40, TCP
	0a 40 01 02  0a 41 00 02` + tcp
)

// tunnelled returns an Ethernet frame of an outer IP header, the headers of a
// tunnel and an inner packet. protocol is that of the outer header.
func tunnelled(t testing.TB, outer string, protocol byte, headers, inner string) []byte {
	t.Helper()
	ip, rest := bytesOf(t, outer), bytesOf(t, headers+inner)
	link := bytesOf(t, ethernet4)
	if ip[0]>>4 == 4 {
		ip[9] = protocol
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(rest)))
	} else {
		ip[6], link[12], link[13] = protocol, 0x86, 0xdd
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40+len(rest)))
	}
	if protocol == protoUDP {
		binary.BigEndian.PutUint16(rest[4:], uint16(len(rest)))
	}
	return append(append(link, ip...), rest...)
}

func TestUntunnel(t *testing.T) {
	const ports = "c0 00 12 b5 00 00 00 00 " // UDP to VXLAN's port
	const gtp = "08 68 08 68 00 00 00 00 "   // UDP to GTP-U's port
	for _, c := range []struct {
		name     string
		protocol byte
		headers  string
		inner    string
		want     bool
	}{
		{"VXLAN", 17, ports + "08 00 00 00 00 00 2a 00", ethernet4 + innerTCP, true},
		{"VXLAN, inner VLAN", 17, ports + "08 00 00 00 00 00 2a 00", "02 00 00 00 00 02 02 00 00 00 00 01 81 00 00 07 08 00" + innerTCP, true},
		{"VXLAN without network identifier", 17, ports + "00 00 00 00 00 00 2a 00", ethernet4 + innerTCP, false},
		{"UDP to another port", 17, "12 b5 00 35 00 00 00 00 08 00 00 00 00 00 2a 00", ethernet4 + innerTCP, false},
		{"Geneve", 17, "c0 00 17 c1 00 00 00 00 00 00 65 58 00 00 2a 00", ethernet4 + innerTCP, false},
		{"GRE", 47, "00 00 08 00", innerTCP, true},
		{"GRE with checksum", 47, "80 00 08 00 ab cd 00 00", innerTCP, true},
		{"GRE with key", 47, "20 00 08 00 00 00 00 07", innerTCP, true},
		{"GRE with sequence number", 47, "10 00 08 00 00 00 00 07", innerTCP, true},
		{"GRE with all fields", 47, "b0 00 08 00 ab cd 00 00 00 00 00 07 00 00 00 01", innerTCP, true},
		{"GRE with IPv6", 47, "00 00 86 dd", ip6 + tcp, true},
		{"GRE with Ethernet", 47, "20 00 65 58 00 00 2a 00", ethernet4 + innerTCP, true},
		{"GRE with a source route", 47, "40 00 08 00 00 00 00 00", innerTCP, false},
		{"GRE of PPTP", 47, "30 01 88 0b 00 2c 00 07 00 00 00 01", innerTCP, false},
		{"GRE with ERSPAN", 47, "10 00 88 be 00 00 00 01 10 00 00 00 00 00 00 00", ethernet4 + innerTCP, false},
		{"GRE with what is no IP", 47, "00 00 08 00", "15" + innerTCP, false},
		{"IPv4 in IP", 4, "", innerTCP, true},
		{"IPv6 in IP", 41, "", ip6 + tcp, true},
		{"ICMP", 1, "", innerTCP, false},
		{"GTP-U", 17, gtp + "30 ff 00 28 00 00 00 07", innerTCP, true},
		{"GTP-U with sequence number", 17, gtp + "32 ff 00 2c 00 00 00 07 00 01 00 00", innerTCP, true},
		{"GTP-U with an extension header", 17, gtp + "34 ff 00 30 00 00 00 07 00 00 00 85 01 00 09 00", innerTCP, true},
		{"GTP-U with two", 17, gtp + "34 ff 00 38 00 00 00 07 00 00 00 85 01 00 09 c0 02 00 00 00 00 00 00 00", innerTCP, true},
		{"GTP-U, extension header of no length", 17, gtp + "34 ff 00 30 00 00 00 07 00 00 00 85 00 00 09 00", innerTCP, false},
		{"GTP-U, extension header beyond the packet", 17, gtp + "34 ff 00 30 00 00 00 07 00 00 00 85 ff 00 09 00", innerTCP, false},
		{"GTP-U echo", 17, gtp + "32 01 00 04 00 00 00 00 00 01 00 00", "", false},
		{"GTP'", 17, gtp + "20 ff 00 28 00 00 00 07", innerTCP, false},
		{"GTP version 2", 17, gtp + "50 ff 00 28 00 00 00 07", innerTCP, false},
	} {
		for _, outer := range []string{outer4, outer6} {
			frame := tunnelled(t, outer, c.protocol, c.headers, c.inner)
			for _, padding := range []int{0, 9} {
				padded := append(bytes.Clone(frame), make([]byte, padding)...)
				var p Packet
				inner, ok := Untunnel(LinkEthernet, padded, len(padded))
				if ok != c.want {
					t.Errorf("%s: %v", c.name, ok)
				}
				if !ok {
					continue
				}
				if n := len(bytesOf(t, c.inner)); len(inner.Frame) != n || inner.OrigLen != n {
					t.Errorf("%s: %d of %d bytes, want %d", c.name, len(inner.Frame), inner.OrigLen, n)
				}
				if v := Decode(inner.LinkType, inner.Frame, inner.OrigLen, &p); v != TCP || p.SrcPort != 40000 || p.DstPort != 80 {
					t.Errorf("%s: %v %+v", c.name, v, p)
				}
			}
			for n := range len(frame) { // captured to anywhere: no tunnel, or a cut inner packet
				var p Packet
				if inner, ok := Untunnel(LinkEthernet, frame[:n], len(frame)); ok {
					if v := Decode(inner.LinkType, inner.Frame, inner.OrigLen, &p); v != Truncated || inner.OrigLen != len(bytesOf(t, c.inner)) {
						t.Errorf("%s, cut to %d bytes: %v, %d bytes", c.name, n, v, inner.OrigLen)
					}
				}
			}
		}
	}
}

// TestUntunnelOuterPacket: fragments are not followed; IP options, extension
// headers and segmentation offload are.
func TestUntunnelOuterPacket(t *testing.T) {
	const gre = "00 00 08 00" + innerTCP
	whole := tunnelled(t, outer4, 47, "00 00 08 00", innerTCP)
	changed := func(at int, values ...byte) []byte {
		b := bytes.Clone(whole)
		copy(b[at:], values)
		return b
	}
	options := tunnelled(t, change(t, outer4, "45 00", "46 00")+"\n01 01 01 00", 47, "00 00 08 00", innerTCP)
	for _, c := range []struct {
		name  string
		frame []byte
		want  bool
	}{
		{"whole", whole, true},
		{"first fragment", changed(20, 0x20), false},
		{"later fragment", changed(20, 0x00, 0x01), false},
		{"don't fragment", changed(20, 0x40), true},
		{"header of 16 bytes", changed(14, 0x44), false},
		{"total length of zero", changed(16, 0, 0), true},
		{"total length of the header", changed(16, 0, 20), false},
		{"version 5", changed(14, 0x55), false},
		{"IP options", options, true},
		{"extension headers", tunnelled(t, outer6, 60, "2f 00 04 01 04 01 01 00", gre), true},
		{"fragment header", tunnelled(t, outer6, 44, "2f 00 00 01 00 00 00 01", gre), false},
		{"extension header beyond the packet", tunnelled(t, outer6, 60, "2f ff 04 01 04 01 01 00", gre), false},
	} {
		inner, ok := Untunnel(LinkEthernet, c.frame, len(c.frame))
		if ok != c.want {
			t.Errorf("%s: %v", c.name, ok)
		}
		var p Packet
		if v := Decode(inner.LinkType, inner.Frame, inner.OrigLen, &p); ok && v != TCP {
			t.Errorf("%s: %v", c.name, v)
		}
		if !Tunnelled(LinkEthernet, c.frame) && ok {
			t.Errorf("%s: not counted as a tunnel", c.name)
		}
	}
	if _, ok := Untunnel(LinkEthernet, bytesOf(t, "02 00 00 00 00 02 02 00 00 00 00 01 08 06 00 01"), 60); ok {
		t.Error("ARP is a tunnel")
	}
}
