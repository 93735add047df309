package packet

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

// bytesOf parses hexadecimal text; # starts a comment.
func bytesOf(t testing.TB, text string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func addr(text string) Addr {
	b := netip.MustParseAddr(text).As16()
	return Addr{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

const (
	ethernet4 = `
	02 00 00 00 00 02  02 00 00 00 00 01  08 00  # Ethernet: to, from, IPv4`
	ip4 = `
	45 00 05 dc  12 34 40 00  40 06 00 00        # IPv4: IHL 5, total length 1500, don't fragment, TTL 64, TCP
	0a 40 01 02  0a 41 00 02                     # 10.64.1.2 to 10.65.0.2`
	ip6 = `
	60 00 00 00  00 22  06 3f                    # IPv6: payload length 34, TCP, hop limit 63
	fd 21 00 00 00 00 00 00  00 00 00 00 00 00 00 02
	fd 23 00 00 00 00 00 00  00 00 00 00 00 00 00 02`
	tcp = `
	9c 40 00 50  01 02 03 04  0a 0b 0c 0d        # TCP: port 40000 to 80, seq, ack
	50 18 01 f6  be ef 00 00                     # data offset 5, PSH ACK, window 502, checksum`
	tcpDSS = `
	9c 40 00 50  01 02 03 04  0a 0b 0c 0d        # TCP
	c0 10 01 f6  be ef 00 00                     # data offset 12, ACK
	1e 1a 20 0f                                  # MPTCP, 26 bytes, DSS, flags m M a A
	00 00 00 00 00 00 10 00                      # data ACK 4096
	11 22 33 44 55 66 77 88                      # DSN
	00 00 00 11  05 90                           # subflow sequence number 17, length 1424
	01 01                                        # two NOPs`
)

// change replaces a part of hexadecimal text that occurs once.
func change(t testing.TB, text, old, now string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is not there once", old)
	}
	return strings.Replace(text, old, now, 1)
}

func TestLinks(t *testing.T) {
	for _, c := range []struct {
		name string
		link int
		text string
	}{
		{"Ethernet", LinkEthernet, ethernet4},
		{"VLAN", LinkEthernet, "02 00 00 00 00 02 02 00 00 00 00 01 81 00 00 07 08 00"},
		{"QinQ", LinkEthernet, "02 00 00 00 00 02 02 00 00 00 00 01 88 a8 00 01 81 00 00 07 08 00"},
		{"QinQ, old", LinkEthernet, "02 00 00 00 00 02 02 00 00 00 00 01 91 00 00 01 91 00 00 07 08 00"},
		{"PPPoE", LinkEthernet, "02 00 00 00 00 02 02 00 00 00 00 01 88 64 11 00 00 01 05 de 00 21"},
		{"PPPoE in a VLAN", LinkEthernet, "02 00 00 00 00 02 02 00 00 00 00 01 81 00 00 07 88 64 11 00 00 01 05 de 00 21"},
		{"raw", LinkRaw, ""},
		{"raw of BSD", LinkRawBSD, ""},
		{"raw of OpenBSD", LinkRawOpen, ""},
		{"raw IPv4", LinkIPv4, ""},
		{"null, little endian", LinkNull, "02 00 00 00"},
		{"null, big endian", LinkNull, "00 00 00 02"},
		{"loop", LinkLoop, "00 00 00 02"},
		{"cooked", LinkSLL, "00 00 00 01 00 06 02 00 00 00 00 01 00 00 08 00"},
		{"cooked with a VLAN", LinkSLL, "00 00 00 01 00 06 02 00 00 00 00 01 00 00 81 00 00 07 08 00"},
		{"cooked 2", LinkSLL2, "08 00 00 00 00 00 00 03 00 01 00 06 02 00 00 00 00 01 00 00"},
		{"PPP", LinkPPP, "00 21"},
		{"PPP with address and control", LinkPPP, "ff 03 00 21"},
		{"PPP, compressed protocol", LinkPPP, "21"},
		{"PPP, address, control, compressed protocol", LinkPPP, "ff 03 21"},
		{"PPP, serial", LinkPPPSerial, "ff 03 00 21"},
		{"Cisco HDLC, unicast", LinkPPPSerial, "0f 00 08 00"},
		{"Cisco HDLC, multicast", LinkPPPSerial, "8f 00 08 00"},
		{"PPP with direction", LinkPPPWithDir, "01 ff 03 00 21"},
		{"PPP with direction, without address", LinkPPPWithDir, "00 00 21"},
	} {
		if !KnownLink(c.link) {
			t.Errorf("%s: link type %d is not known", c.name, c.link)
		}
		header := bytesOf(t, c.text)
		frame := append(header, bytesOf(t, ip4+tcp)...)
		var got Packet
		if v := Decode(c.link, frame, len(header)+1500, &got); v != TCP || got.SrcPort != 40000 || got.Payload != 1460 {
			t.Errorf("%s: %v %+v", c.name, v, got)
		}
		for n := range len(frame) {
			if v := Decode(c.link, frame[:n], len(frame), &got); v != Truncated {
				t.Errorf("%s, cut to %d bytes: %v", c.name, n, v)
			}
		}
	}
}

func TestDecode(t *testing.T) {
	want4 := Packet{
		Src: addr("10.64.1.2"), Dst: addr("10.65.0.2"), SrcPort: 40000, DstPort: 80, Seq: 0x01020304, Ack: 0x0a0b0c0d,
		Flags: PSH | ACK, Window: 502, Checksum: 0xbeef, IPID: 0x1234, TTL: 64, Payload: 1460, Options: []byte{}, Data: []byte{},
	}
	want6 := want4
	want6.Src, want6.Dst, want6.IPID, want6.TTL, want6.Quirks, want6.Payload = addr("fd21::2"), addr("fd23::2"), 0, 63, IPv6, 14
	with := func(p Packet, payload uint32, quirks Quirk, data string) Packet {
		p.Payload, p.Quirks, p.Data = payload, p.Quirks|quirks, []byte(data)
		return p
	}
	next := func(header, length string) string {
		return change(t, change(t, ip6, "06 3f", header+" 3f"), "00 22", length)
	}
	for _, c := range []struct {
		name string
		wire int
		text string
		want Packet
	}{
		{"IPv4", 1500, ip4 + tcp, want4},
		{"the captured payload", 1500, ip4 + tcp + "\n41 42 43", with(want4, 1460, 0, "ABC")},
		{"padding is no payload", 60, change(t, ip4, "05 dc", "00 2a") + tcp + "\n41 42 00 00", with(want4, 2, 0, "AB")},
		{"IP options", 1500, change(t, ip4, "45", "46") + "\n01 01 01 01" + tcp, with(want4, 1456, 0, "")},
		{"first fragment", 1500, change(t, ip4, "40 00  40 06", "20 00  40 06") + tcp, with(want4, 1460, FirstFragment, "")},
		{"super-segment", 65535, change(t, ip4, "05 dc", "ff ff") + tcp, with(want4, 65495, 0, "")},
		{"super-segment without length", 180000, change(t, ip4, "05 dc", "00 00") + tcp, with(want4, 179960, 0, "")},
		{"more bytes than the frame had", 66, ip4 + tcp, with(want4, 26, LengthDamaged, "")},
		{"IPv6, more bytes than the frame had", 70, ip6 + tcp, with(want6, 10, LengthDamaged, "")},
		{"IPv6 jumbogram, more bytes than the frame had", 80, next("00", "00 00") + "06 00 c2 04 00 02 00 00" + tcp, with(want6, 12, LengthDamaged, "")},
		{"IPv6", 74, ip6 + tcp, want6},
		{"IPv6 super-segment without length", 180000, change(t, ip6, "00 22", "00 00") + tcp, with(want6, 179940, 0, "")},
		{
			"IPv6 jumbogram", 0x20028, next("00", "00 00") + "06 00 c2 04 00 02 00 00" + tcp,
			with(want6, 0x20000-28, 0, ""),
		},
		{
			"IPv6 jumbogram, option behind padding", 0x20028, next("00", "00 00") + "06 01 00 01 02 00 00 00 00 c2 04 00 02 00 00 00" + tcp,
			with(want6, 0x20000-36, 0, ""),
		},
		{"IPv6 jumbo option beside a length", 82, next("00", "00 2a") + "06 00 c2 04 00 02 00 00" + tcp, want6},
		{"IPv6 hop-by-hop options", 82, next("00", "00 2a") + "06 00 01 04 00 00 00 00" + tcp, want6},
		{
			"IPv6 routing and destination options", 98,
			next("2b", "00 3a") + "3c 01 04 00 00 00 00 00 00 00 00 00 00 00 00 00" + "06 00 01 04 00 00 00 00" + tcp, want6,
		},
		{"IPv6 authentication header", 86, next("33", "00 2e") + "06 01 00 00 00 00 00 00 00 00 00 00" + tcp, want6},
		{"IPv6 first fragment", 82, next("2c", "00 2a") + "06 00 00 01 00 00 00 07" + tcp, with(want6, 14, FirstFragment, "")},
		{"IPv6 fragment that is whole", 82, next("2c", "00 2a") + "06 00 00 00 00 00 00 07" + tcp, want6},
	} {
		var got Packet
		if v := Decode(LinkRaw, bytesOf(t, c.text), c.wire, &got); v != TCP || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", c.name, v, got, c.want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	ethernet6 := change(t, ethernet4, "08 00", "86 dd")
	for _, c := range []struct {
		name string
		text string
		want Verdict
	}{
		{"ARP", "02 00 00 00 00 02 02 00 00 00 00 01 08 06 00 01", Other},
		{"LLC", "02 00 00 00 00 02 02 00 00 00 00 01 00 26 42 42 03", Other},
		{"PPPoE with LCP", "02 00 00 00 00 02 02 00 00 00 00 01 88 64 11 00 00 01 00 06 c0 21 01", Other},
		{"no header", "02 00 00 00", Truncated},
		{"nothing behind Ethernet", ethernet4, Truncated},
		{"UDP", ethernet4 + change(t, ip4, "40 06", "40 11") + tcp, Other},
		{"later fragment", ethernet4 + change(t, ip4, "40 00  40", "00 b9  40") + tcp, Fragment},
		{"later fragment of UDP", ethernet4 + change(t, ip4, "40 00  40 06", "00 b9  40 11") + tcp, Other},
		{"cut in IP", ethernet4 + "45 00 05 dc", Truncated},
		{"cut in TCP", ethernet4 + ip4 + "9c 40 00 50", Truncated},
		{"IHL 4", ethernet4 + change(t, ip4, "45", "44") + tcp, Malformed},
		{"data offset 4", ethernet4 + ip4 + change(t, tcp, "50 18", "40 18"), Malformed},
		{"data offset behind the end", ethernet4 + change(t, ip4, "05 dc", "00 28") + change(t, tcp, "50 18", "60 18") + "\n01 01 01 01", Malformed},
		{"total length 30", ethernet4 + change(t, ip4, "05 dc", "00 1e") + tcp, Malformed},
		{"total length 10", ethernet4 + change(t, ip4, "05 dc", "00 0a") + tcp, Malformed},
		{"version 9", ethernet4 + change(t, ip4, "45", "95") + tcp, Malformed},
		{"cut in IPv6", ethernet6 + "60 00 00 00", Truncated},
		{"IPv6 UDP", ethernet6 + change(t, ip6, "06 3f", "11 3f") + tcp, Other},
		{"cut in IPv6 options", ethernet6 + change(t, ip6, "06 3f", "00 3f") + "06 00", Hidden},
		{"cut behind IPv6 options", ethernet6 + change(t, ip6, "06 3f", "00 3f") + "06 00 01 04 00 00 00 00", Truncated},
		{"IPv6 options longer than the packet", ethernet6 + change(t, ip6, "06 3f", "00 3f") + "06 09 01 04 00 00 00 00", Malformed},
		{"IPv6 later fragment", ethernet6 + change(t, ip6, "06 3f", "2c 3f") + "06 00 05 a8 00 00 00 07", Fragment},
		{"IPv6 later fragment of UDP", ethernet6 + change(t, ip6, "06 3f", "2c 3f") + "11 00 05 a8 00 00 00 07", Other},
	} {
		var p Packet
		if got := Decode(LinkEthernet, bytesOf(t, c.text), 1514, &p); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTunnelled(t *testing.T) {
	ethernet6 := change(t, ethernet4, "08 00", "86 dd")
	udp := func(port string) string {
		return ethernet4 + change(t, ip4, "40 06", "40 11") + "\n9c 40 " + port + "00 08 00 00"
	}
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"GRE", ethernet4 + change(t, ip4, "40 06", "40 2f"), true},
		{"IPv4 in IPv4", ethernet4 + change(t, ip4, "40 06", "40 04"), true},
		{"IPv6 in IPv4", ethernet4 + change(t, ip4, "40 06", "40 29"), true},
		{"IPv4 in IPv6", ethernet6 + change(t, ip6, "06 3f", "04 3f"), true},
		{"MPLS", change(t, ethernet4, "08 00", "88 47"), true},
		{"VXLAN", udp("12 b5"), true},
		{"GTP-U", udp("08 68"), true},
		{"UDP", udp("00 35"), false},
		{"UDP, cut", ethernet4 + change(t, ip4, "40 06", "40 11"), false},
		{"ARP", "02 00 00 00 00 02 02 00 00 00 00 01 08 06 00 01", false},
		{"ICMP", ethernet4 + change(t, ip4, "40 06", "40 01"), false},
		{"IP, cut", ethernet4 + "45 00", false},
		{"nothing", "", false},
	} {
		if got := Tunnelled(LinkEthernet, bytesOf(t, c.text)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestUnknownLinkIsOther(t *testing.T) {
	var p Packet
	if v := Decode(105, bytesOf(t, ip4+tcp), 1500, &p); KnownLink(105) || v != Other {
		t.Error(v)
	}
}

func TestIfIndex(t *testing.T) {
	cooked2 := bytesOf(t, "08 00 00 00 00 00 01 03 00 01 00 06 02 00 00 00 00 01 00 00")
	if index, ok := IfIndex(LinkSLL2, cooked2); index != 0x103 || !ok {
		t.Error(index, ok)
	}
	if _, ok := IfIndex(LinkSLL2, cooked2[:7]); ok {
		t.Error("an index from 7 bytes")
	}
	if _, ok := IfIndex(LinkSLL, cooked2); ok {
		t.Error("cooked mode 1 tells no index")
	}
}

func TestAddr(t *testing.T) {
	for _, text := range []string{"10.64.1.2", "fd21::2"} {
		if a := addr(text); a.String() != text {
			t.Errorf("%s becomes %s", text, a)
		}
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	frame := bytesOf(t, ethernet4+ip4+tcpDSS)
	var p Packet
	if n := testing.AllocsPerRun(100, func() { Decode(LinkEthernet, frame, 1514, &p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
