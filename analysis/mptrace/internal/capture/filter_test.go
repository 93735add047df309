package capture

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
)

// run runs a filter on a packet, in the BPF machine of x/net.
func run(t *testing.T, o filterOptions, packet []byte) int {
	t.Helper()
	raw, err := filter(o)
	if err != nil {
		t.Fatal(err)
	}
	code, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("a step is not known")
	}
	vm, err := bpf.NewVM(code)
	if err != nil {
		t.Fatal(err)
	}
	n, err := vm.Run(packet)
	if err != nil {
		t.Fatal(err)
	}
	return min(n, len(packet))
}

func packetOf(t *testing.T, headers string, payload int) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(headers, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return append(b, bytes.Repeat([]byte{0xee}, payload)...)
}

const (
	mac  = "020000000002020000000001"
	ip4  = "450005dc 0001 0000 40 06 0000 0a400102 0a410002 "
	ip6  = "60000000 0400 06 40 fd210000000000000000000000000002 fd230000000000000000000000000002 "
	tcp5 = "9c400050 01020304 0a0b0c0d 50180000 00000000 "
	tcp8 = "9c400050 01020304 0a0b0c0d 80180000 00000000 0101080a 00000001 00000002 "
	udp  = "9c400035 00280000 "
)

func TestHeadersOnly(t *testing.T) {
	as := func(ip, protocol string) string { return strings.Replace(ip, " 06 ", " "+protocol+" ", 1) }
	as4 := func(protocol string) string { return strings.Replace(ip4, "40 06", "40 "+protocol, 1) }
	for _, c := range []struct {
		name, packet string
	}{
		{"TCP", mac + "0800" + ip4 + tcp5},
		{"TCP with options", mac + "0800" + ip4 + tcp8},
		{"IP with options", mac + "0800" + strings.Replace(ip4, "45", "46", 1) + "01010100" + tcp8},
		{"VLAN", mac + "81000007 0800" + ip4 + tcp8},
		{"two VLANs", mac + "88a80001 81000007 0800" + ip4 + tcp8},
		{"UDP", mac + "0800" + as4("11") + udp},
		{"ICMP", mac + "0800" + as4("01") + "0800000000010001"},
		{"another protocol", mac + "0800" + as4("2f")},
		{"later fragment", mac + "0800" + strings.Replace(ip4, "0001 0000", "0001 00b9", 1)},
		{"TCP over IPv6", mac + "86dd" + ip6 + tcp8},
		{"UDP over IPv6", mac + "86dd" + as(ip6, "11") + udp},
		{"ICMPv6", mac + "86dd" + as(ip6, "3a") + "8000000000010001"},
		{"extension header", mac + "86dd" + as(ip6, "00")},
		{"VLAN, IPv6", mac + "81000007 86dd" + ip6 + tcp8},
		{"ARP", mac + "0806 0001080006040001 020000000001 0a400102 000000000000 0a400101"},
		{"unknown type", mac + "88cc"},
	} {
		packet := packetOf(t, c.packet, 600)
		if got := run(t, filterOptions{ethernet: true, snapLen: MaxSnapLen}, packet); got != len(packet)-600 {
			t.Errorf("%s: %d bytes, headers are %d", c.name, got, len(packet)-600)
		}
		if strings.HasPrefix(c.packet, mac+"0800"+ip4) {
			raw := packet[14:]
			if got := run(t, filterOptions{snapLen: MaxSnapLen}, raw); got != len(raw)-600 {
				t.Errorf("%s without Ethernet: %d bytes, headers are %d", c.name, got, len(raw)-600)
			}
		}
	}
}

// TestShortPackets: a packet that ends inside a header is not dropped.
func TestShortPackets(t *testing.T) {
	for _, headers := range []string{mac + "0800" + ip4 + tcp8, mac + "86dd" + ip6 + tcp8} {
		whole := packetOf(t, headers, 0)
		for n := 14; n <= len(whole); n++ {
			if got := run(t, filterOptions{ethernet: true, snapLen: MaxSnapLen}, whole[:n]); got < 14 {
				t.Errorf("%d of %d bytes: %d kept", n, len(whole), got)
			}
		}
	}
}

func TestSnapLen(t *testing.T) {
	packet := packetOf(t, mac+"0800"+ip4+tcp8, 600)
	if got := run(t, filterOptions{ethernet: true, snapLen: 40}, packet); got != 40 {
		t.Errorf("%d bytes", got)
	}
	if got := run(t, filterOptions{ethernet: true, payload: true, snapLen: 300}, packet); got != 300 {
		t.Errorf("%d bytes", got)
	}
}
