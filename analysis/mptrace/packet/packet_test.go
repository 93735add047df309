package packet

import (
	"encoding/hex"
	"strings"
	"testing"
)

// bytesOf reads hexadecimal; what follows a # on a line is a comment.
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

const (
	ethernet4 = `
	02 00 00 00 00 02  02 00 00 00 00 01  08 00  # Ethernet: to, from, IPv4`
	ip4 = `
	45 00 05 dc  00 01 40 00  40 06 00 00        # IPv4: IHL 5, total length 1500, don't fragment, TTL 64, TCP
	0a 40 01 02  0a 41 00 02                     # 10.64.1.2 to 10.65.0.2`
	ip6 = `
	60 00 00 00  00 22  06 40                    # IPv6: payload length 34, TCP, hop limit 64
	fd 21 00 00 00 00 00 00  00 00 00 00 00 00 00 02
	fd 23 00 00 00 00 00 00  00 00 00 00 00 00 00 02`
	tcp = `
	9c 40 00 50  01 02 03 04  0a 0b 0c 0d        # TCP: port 40000 to 80, seq, ack
	50 18 01 f6  00 00 00 00                     # data offset 5, PSH ACK, window 502`
	tcpDSS = `
	9c 40 00 50  01 02 03 04  0a 0b 0c 0d        # TCP
	c0 10 01 f6  00 00 00 00                     # data offset 12, ACK
	1e 1a 20 0f                                  # MPTCP, 26 bytes, DSS, flags m M a A
	00 00 00 00 00 00 10 00                      # data ACK 4096
	11 22 33 44 55 66 77 88                      # DSN
	00 00 00 11  05 90                           # subflow sequence number 17, length 1424
	01 01                                        # two NOPs`
)

func TestDecode(t *testing.T) {
	var want4, want6 Packet
	want4 = Packet{
		Src: Addr{10: 255, 11: 255, 12: 10, 13: 64, 14: 1, 15: 2}, Dst: Addr{10: 255, 11: 255, 12: 10, 13: 65, 14: 0, 15: 2},
		SrcPort: 40000, DstPort: 80, Seq: 0x01020304, Ack: 0x0a0b0c0d, Flags: PSH | ACK, Window: 502, Payload: 1460,
	}
	want6 = want4
	want6.Src, want6.Dst = Addr{0: 0xfd, 1: 0x21, 15: 2}, Addr{0: 0xfd, 1: 0x23, 15: 2}
	want6.Payload = 14
	fragmented := want4
	fragmented.FirstFragment = true
	offload := want4
	offload.Payload = 64000 - 54
	for _, c := range []struct {
		name string
		link int
		wire int
		text string
		want Packet
	}{
		{"Ethernet", LinkEthernet, 1514, ethernet4 + ip4 + tcp, want4},
		{"VLAN", LinkEthernet, 1518, "02 00 00 00 00 02 02 00 00 00 00 01 81 00 00 07 08 00" + ip4 + tcp, want4},
		{"two VLANs", LinkEthernet, 1522, "02 00 00 00 00 02 02 00 00 00 00 01 88 a8 00 01 81 00 00 07 08 00" + ip4 + tcp, want4},
		{"raw", LinkRaw, 1500, ip4 + tcp, want4},
		{"null, little endian", LinkNull, 1504, "02 00 00 00" + ip4 + tcp, want4},
		{"loop, big endian", LinkLoop, 1504, "00 00 00 02" + ip4 + tcp, want4},
		{"cooked", LinkSLL, 1516, "00 00 00 01 00 06 02 00 00 00 00 01 00 00 08 00" + ip4 + tcp, want4},
		{"cooked 2", LinkSLL2, 1520, "08 00 00 00 00 00 00 02 00 01 00 06 02 00 00 00 00 01 00 00" + ip4 + tcp, want4},
		{"IPv6", LinkRaw, 74, ip6 + tcp, want6},
		{"IPv6 with options before", LinkRaw, 82, strings.Replace(strings.Replace(ip6, "06 40", "00 40", 1), "00 22", "00 2a", 1) + "06 00 01 04 00 00 00 00" + tcp, want6},
		{"first fragment", LinkRaw, 1500, strings.Replace(ip4, "40 00  40 06", "20 00  40 06", 1) + tcp, fragmented},
		{"segmentation offload", LinkEthernet, 64000, ethernet4 + strings.Replace(ip4, "05 dc", "00 00", 1) + tcp, offload},
	} {
		var got Packet
		if v := Decode(c.link, bytesOf(t, c.text), c.wire, &got); v != TCP || got != c.want {
			t.Errorf("%s: %v\n got %+v\nwant %+v", c.name, v, got, c.want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		want Verdict
	}{
		{"ARP", "02 00 00 00 00 02 02 00 00 00 00 01 08 06 00 01", Other},
		{"no header", "02 00 00 00", Truncated},
		{"UDP", ethernet4 + strings.Replace(ip4, "40 06", "40 11", 1) + tcp, Other},
		{"later fragment", ethernet4 + strings.Replace(ip4, "40 00  40", "00 b9  40", 1) + tcp, Fragment},
		{"cut in IP", ethernet4 + "45 00 05 dc", Truncated},
		{"cut in TCP", ethernet4 + ip4 + "9c 40 00 50", Truncated},
		{"IHL 4", ethernet4 + strings.Replace(ip4, "45", "44", 1) + tcp, Malformed},
		{"data offset 4", ethernet4 + ip4 + strings.Replace(tcp, "50 18", "40 18", 1), Malformed},
		{"total length 30", ethernet4 + strings.Replace(ip4, "05 dc", "00 1e", 1) + tcp, Malformed},
		{"version 9", ethernet4 + strings.Replace(ip4, "45", "95", 1) + tcp, Malformed},
		{"cut in IPv6 options", strings.Replace(ethernet4, "08 00  #", "86 dd  #", 1) + strings.Replace(ip6, "06 40", "00 40", 1) + "06 00", Hidden},
	} {
		var p Packet
		if got := Decode(LinkEthernet, bytesOf(t, c.text), 1514, &p); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCutOptions(t *testing.T) {
	frame := bytesOf(t, ethernet4+ip4+tcpDSS)
	var p Packet
	Decode(LinkEthernet, frame, 1514, &p)
	if p.OptionsCut || p.Options.Has != HasDSS || p.Payload != 1432 {
		t.Errorf("whole: %+v", p)
	}
	Decode(LinkEthernet, frame[:len(frame)-10], 1514, &p)
	if !p.OptionsCut || p.Options.Has != 0 || p.Payload != 1432 {
		t.Errorf("cut: %+v", p)
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	frame := bytesOf(t, ethernet4+ip4+tcpDSS)
	var p Packet
	if n := testing.AllocsPerRun(100, func() { Decode(LinkEthernet, frame, 1514, &p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestOptions(t *testing.T) {
	const dsn = 0x1122334455667788
	for _, c := range []struct {
		name string
		text string
		want Options
	}{
		{"MP_CAPABLE SYN v1", "1e 04 01 81", Options{Has: HasCapable, Capable: Capable{Version: 1}}},
		{
			"MP_CAPABLE SYN/ACK", "1e 0c 01 81 11 22 33 44 55 66 77 88",
			Options{Has: HasCapable, Capable: Capable{Version: 1, Keys: 1, SenderKey: dsn}},
		},
		{
			"MP_CAPABLE with data", "1e 16 01 81 11 22 33 44 55 66 77 88 00 00 00 00 00 00 00 09 00 20",
			Options{Has: HasCapable, Capable: Capable{Version: 1, Keys: 2, SenderKey: dsn, ReceiverKey: 9, HasDataLen: true, DataLen: 32}},
		},
		{
			"MP_CAPABLE ACK v0", "1e 14 00 81 11 22 33 44 55 66 77 88 00 00 00 00 00 00 00 09",
			Options{Has: HasCapable, Capable: Capable{Keys: 2, SenderKey: dsn, ReceiverKey: 9}},
		},
		{
			"MP_JOIN SYN, backup", "1e 0c 11 02 aa bb cc dd 00 00 00 07",
			Options{Has: HasJoin, Join: Join{Form: JoinSYN, Backup: true, AddressID: 2, Token: 0xaabbccdd, Nonce: 7}},
		},
		{
			"MP_JOIN SYN/ACK", "1e 10 10 03 01 02 03 04 05 06 07 08 00 00 00 09",
			Options{Has: HasJoin, Join: Join{Form: JoinSYNACK, AddressID: 3, Nonce: 9, HMAC: [20]byte{1, 2, 3, 4, 5, 6, 7, 8}}},
		},
		{
			"MP_JOIN ACK", "1e 18 10 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02",
			Options{Has: HasJoin, Join: Join{Form: JoinACK, HMAC: [20]byte{0: 1, 19: 2}}},
		},
		{"DSS, 32-bit ACK", "1e 08 20 01 00 00 10 00", Options{Has: HasDSS, DSS: DSS{HasAck: true, Ack: 4096}}},
		{
			"DSS, 32-bit DSN, checksum", "1e 10 20 04 55 66 77 88 00 00 00 11 05 90 ab cd",
			Options{Has: HasDSS, DSS: DSS{HasMap: true, DSN: 0x55667788, SSN: 17, Len: 1424}},
		},
		{
			"DSS, all in 64 bits, DATA_FIN", "1e 1a 20 1f 00 00 00 00 00 00 10 00 11 22 33 44 55 66 77 88 00 00 00 00 00 01",
			Options{Has: HasDSS, DSS: DSS{HasAck: true, Ack64: true, Ack: 4096, HasMap: true, DSN64: true, DataFIN: true, DSN: dsn, Len: 1}},
		},
		{"MP_PRIO", "1e 03 51", Options{Has: HasPrio, Backup: true}},
		{"MP_FAIL", "1e 0c 60 00 11 22 33 44 55 66 77 88", Options{Has: HasFail, FailDSN: dsn}},
		{"FASTCLOSE", "1e 0c 70 00 11 22 33 44 55 66 77 88", Options{Has: HasFastclose}},
		{"MP_TCPRST", "1e 04 80 01", Options{Has: HasReset}},
		{"ADD_ADDR", "1e 10 30 02 0a 40 02 02 01 02 03 04 05 06 07 08", Options{Has: HasAddAddr}},
		{"unknown subtype", "1e 04 f0 00", Options{}},
		{"length that fits no form", "1e 05 01 81 00", Options{Has: HasBad, Capable: Capable{Version: 1}}},
		{"after others", "02 04 05 b4 04 02 01 1e 03 50", Options{Has: HasPrio}},
		{"longer than the header", "1e 0c 01 81", Options{}},
		{"after the end", "00 1e 03 51", Options{}},
		{"no length", "1e", Options{}},
		{"length 1", "1e 01 00", Options{}},
	} {
		var got Options
		got.parse(bytesOf(t, c.text))
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{ethernet4 + ip4 + tcp, ethernet4 + ip4 + tcpDSS} {
		f.Add(uint16(LinkEthernet), bytesOf(f, text), 1514)
	}
	f.Add(uint16(LinkRaw), bytesOf(f, ip6+tcp), 74)
	f.Fuzz(func(t *testing.T, link uint16, frame []byte, wire int) {
		var p Packet
		if Decode(int(link), frame, wire, &p) == TCP && p.Payload < 0 {
			t.Errorf("payload of %d bytes", p.Payload)
		}
	})
}
