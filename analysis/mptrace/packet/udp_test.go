package packet

import (
	"bytes"
	"testing"
)

const (
	udp4 = `
	45 00 00 20  00 01 40 00  40 11 00 00        # IPv4: total length 32, don't fragment, UDP
	0a 40 01 35  0a 40 01 02                     # 10.64.1.53 to 10.64.1.2`
	udp6 = `
	60 00 00 00  00 0c 11 40                     # IPv6: payload length 12, UDP
	fd 21 00 00 00 00 00 00  00 00 00 00 00 00 00 35
	fd 21 00 00 00 00 00 00  00 00 00 00 00 00 00 02`
	udp = `
	00 35 9c 40  00 0c 00 00                     # UDP: port 53 to 40000, length 12, no checksum
	61 62 63 64`
)

// TestDatagramOnLinks: the datagram is found after each kind of link header,
// without bytes after its end.
func TestDatagramOnLinks(t *testing.T) {
	for _, c := range []struct {
		name string
		link int
		text string
		ip   string
	}{
		{"Ethernet", LinkEthernet, ethernet4, udp4},
		{"IPv6", LinkEthernet, "02 00 00 00 00 02 02 00 00 00 00 01 86 dd", udp6},
		{"QinQ", LinkEthernet, "02 00 00 00 00 02 02 00 00 00 00 01 88 a8 00 01 81 00 00 07 08 00", udp4},
		{"PPPoE", LinkEthernet, "02 00 00 00 00 02 02 00 00 00 00 01 88 64 11 00 00 01 05 de 00 21", udp4},
		{"raw", LinkRaw, "", udp4},
		{"raw of BSD", LinkRawBSD, "", udp6},
		{"raw of OpenBSD", LinkRawOpen, "", udp4},
		{"raw IPv4", LinkIPv4, "", udp4},
		{"raw IPv6", LinkIPv6, "", udp6},
		{"null", LinkNull, "02 00 00 00", udp4},
		{"loop", LinkLoop, "00 00 00 18", udp6},
		{"cooked", LinkSLL, "00 00 00 01 00 06 02 00 00 00 00 01 00 00 08 00", udp4},
		{"cooked 2", LinkSLL2, "86 dd 00 00 00 00 00 03 00 01 00 06 02 00 00 00 00 01 00 00", udp6},
		{"PPP", LinkPPP, "ff 03 00 21", udp4},
		{"PPP with direction", LinkPPPWithDir, "00 ff 03 00 57", udp6},
		{"PPP in HDLC", LinkPPPSerial, "ff 03 00 21", udp4},
		{"Cisco's HDLC", LinkPPPSerial, "0f 00 08 00", udp4},
	} {
		frame := bytesOf(t, c.text+c.ip+udp)
		for _, padding := range [][]byte{nil, make([]byte, 9)} {
			port, payload, ok := Datagram(c.link, append(frame[:len(frame):len(frame)], padding...))
			if !ok || port != 53 || string(payload) != "abcd" {
				t.Errorf("%s: %v from port %d: %q", c.name, ok, port, payload)
			}
		}
		for n := range frame { // truncated anywhere, it is no datagram
			if _, payload, ok := Datagram(c.link, frame[:n]); ok || payload != nil {
				t.Errorf("%s, cut behind %d bytes: %q", c.name, n, payload)
			}
		}
	}
}

func TestDatagramBehindExtensionHeaders(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers string // protocol number of the first header, and the headers
		want    bool
	}{
		{"hop by hop", "00  11 00 05 02 00 00 01 00", true},
		{"destination options of 16 bytes", "3c  11 01 01 0c 00 00 00 00 00 00 00 00 00 00 00 00", true},
		{"routing and authentication", "2b  33 00 00 00 00 00 00 00  11 01 00 00 00 00 00 00 00 00 00 00", true},
		{"a fragment that is all of it", "2c  11 00 00 06 00 00 00 01", true},
		{"first fragment", "2c  11 00 00 01 00 00 00 01", false},
		{"later fragment", "2c  11 00 00 08 00 00 00 01", false},
		{"TCP", "06 ", false},
		{"none behind", "3b ", false},
		{"longer than the packet", "00  11 09 05 02 00 00 01 00", false},
	} {
		headers := bytesOf(t, c.headers)
		b := bytesOf(t, udp6)
		b[5], b[6] = byte(len(headers)-1+12), headers[0]
		b = append(append(b, headers[1:]...), bytesOf(t, udp)...)
		if _, payload, ok := Datagram(LinkRaw, b); ok != c.want || ok && string(payload) != "abcd" {
			t.Errorf("%s: %v, %q", c.name, ok, payload)
		}
	}
}

func TestWhatIsNoDatagram(t *testing.T) {
	for _, c := range []struct{ name, old, now string }{
		{"TCP", "40 11", "40 06"},
		{"first fragment", "00 01 40 00", "00 01 20 00"},
		{"later fragment", "00 01 40 00", "00 01 00 01"},
		{"IP header of 16 bytes", "45 00", "44 00"},
		{"total length of zero", "00 20 ", "00 00 "},
		{"total length of the IP header", "00 20 ", "00 14 "},
		{"longer than its packet", "00 0c 00 00", "00 0d 00 00"},
		{"shorter than its header", "00 0c 00 00", "00 07 00 00"},
		{"IP version 5", "45 00", "55 00"},
	} {
		b := bytesOf(t, change(t, udp4+udp, c.old, c.now))
		if _, payload, ok := Datagram(LinkRaw, append(b, 0, 0, 0, 0)); ok {
			t.Errorf("%s: %q", c.name, payload)
		}
	}
	withOptions := bytesOf(t, change(t, udp4, "45 00 00 20", "46 00 00 24")+"\n01 01 01 00"+udp)
	if _, payload, ok := Datagram(LinkRaw, withOptions); !ok || string(payload) != "abcd" {
		t.Errorf("behind IP options: %v, %q", ok, payload)
	}
	if _, _, ok := Datagram(105, bytesOf(t, udp4+udp)); ok {
		t.Error("on an unknown link")
	}
}

// FuzzDatagram: for any bytes, a payload is within the frame, and a datagram is
// not a segment.
func FuzzDatagram(f *testing.F) {
	f.Add(uint16(LinkEthernet), bytesOf(f, ethernet4+udp4+udp))
	f.Add(uint16(LinkRaw), bytesOf(f, udp6+udp))
	f.Fuzz(func(t *testing.T, link uint16, frame []byte) {
		_, payload, ok := Datagram(int(link), frame)
		if !ok {
			return
		}
		if !bytes.Contains(frame, payload) {
			t.Errorf("% x is not in % x", payload, frame)
		}
		var p Packet
		if v := Decode(int(link), frame, len(frame), &p); v != Other {
			t.Errorf("a datagram and %v", v)
		}
	})
}

func TestIPIsBehindTheLinkHeader(t *testing.T) {
	ip := []byte{0x45, 1, 2, 3}
	ethernet := append(append(make([]byte, 12), 8, 0), ip...)
	arp := append(append(make([]byte, 12), 8, 6), ip...)
	if got := IP(LinkEthernet, ethernet); !bytes.Equal(got, ip) {
		t.Errorf("% x", got)
	}
	if got := IP(LinkRaw, ip); !bytes.Equal(got, ip) {
		t.Errorf("% x", got)
	}
	if IP(LinkEthernet, arp) != nil || IP(LinkEthernet, ethernet[:14]) != nil || IP(147, ethernet) != nil {
		t.Error("what is no IP was taken for it")
	}
}
