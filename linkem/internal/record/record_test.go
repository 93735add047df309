package record

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

var (
	phone  = netip.MustParseAddrPort("10.0.0.2:4711")
	server = netip.MustParseAddrPort("10.0.0.1:80")
)

// capture is a list of packets in the order of time.
type capture []seen

func (c *capture) add(at int64, source, target netip.AddrPort, bytes int) *seen {
	*c = append(*c, seen{timeNS: at, protocol: protocolTCP, source: source, target: target, bytes: bytes})
	return &(*c)[len(*c)-1]
}

// transfer returns a connection of the phone with a full packet every 2 ms down, and acknowledgements.
func transfer() *capture {
	c := &capture{}
	c.add(-40*ms, phone, server, 60).opens = true
	c.add(-20*ms, server, phone, 60).isOpened = true
	c.add(-19*ms, phone, server, 52)
	for i := range int64(500) {
		c.add(i*2*ms, server, phone, 1500-12*int(i%2)) // every second one with a longer option
		c.add(i*2*ms+ms/2, phone, server, 52)
	}
	return c
}

func built(t *testing.T, c *capture, options Options) Result {
	t.Helper()
	result, err := build(*c, options)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestFullPacketsAreOpportunities(t *testing.T) {
	r := built(t, transfer(), Options{Direction: Down})
	if r.Full != 499 || r.Trace.Len() != 499 || r.Trace.At(0) != 2 || r.Trace.LengthMs() != 998 || r.MTU != 1500 || r.Bundles != 0 {
		t.Errorf("%+v", r)
	}
	if r.Flow != "TCP 10.0.0.1:80 → 10.0.0.2:4711" {
		t.Error(r.Flow)
	}
	if kbps := r.Trace.Summarise().MeanKbps; kbps != 6000 {
		t.Errorf("%g kbit/s, want 6000", kbps)
	}
}

func TestSpanOfACapture(t *testing.T) {
	// From 101 ms on, for 200 ms: the packets at 102 to 300 ms, which are 1 to 199 ms after the start.
	r := built(t, transfer(), Options{Direction: Down, Skip: 101 * time.Millisecond, Duration: 200 * time.Millisecond})
	if r.Full != 100 || r.Trace.At(0) != 1 || r.Trace.LengthMs() != 199 {
		t.Errorf("%d opportunities from %d to %d ms", r.Full, r.Trace.At(0), r.Trace.LengthMs())
	}
	// Times are rounded up to whole milliseconds, so that no packet is delivered before it arrived.
	r = built(t, transfer(), Options{Direction: Down, Skip: 2*time.Millisecond + 1})
	if r.Trace.At(0) != 2 {
		t.Errorf("the first opportunity is at %d ms, want 2", r.Trace.At(0))
	}
}

func TestDirectionsAreThoseOfTheOpener(t *testing.T) {
	upload := &capture{}
	upload.add(0, phone, server, 60).opens = true
	upload.add(1, server, phone, 60).isOpened = true
	download := &capture{}
	// A capture that starts with the server's answer.
	download.add(0, server, phone, 60).isOpened = true
	datagrams := &capture{}
	for i := range int64(10) {
		upload.add(ms+i*ms, phone, server, 1500)
		upload.add(ms+i*ms, server, phone, 52)
		download.add(ms+i*ms, server, phone, 1500)
		download.add(ms+i*ms, phone, server, 52)
		datagrams.add(i*ms, phone, server, 1400).protocol = protocolUDP
	}
	for _, c := range []struct {
		capture   *capture
		direction string
		flow      string
	}{
		{upload, Up, "TCP 10.0.0.2:4711 → 10.0.0.1:80"},
		{download, Down, "TCP 10.0.0.1:80 → 10.0.0.2:4711"},
		{datagrams, Up, "UDP 10.0.0.2:4711 → 10.0.0.1:80"},
	} {
		if r := built(t, c.capture, Options{Direction: c.direction}); r.Flow != c.flow || r.Full != 9 {
			t.Errorf("%+v, want %s", r, c.flow)
		}
	}
	if _, err := build(*datagrams, Options{Direction: Down}); err == nil || err.Error() != "no TCP or UDP packets go down" {
		t.Error(err)
	}
}

func TestConnectionsOfTheSameHostsCountTogether(t *testing.T) {
	c := transfer()
	second := netip.AddrPortFrom(phone.Addr(), 4712)
	stranger := netip.MustParseAddrPort("10.0.0.9:80")
	for i := range int64(100) {
		c.add(i*2*ms+ms, server, second, 1500)
		c.add(i*2*ms+ms, stranger, phone, 1500)
		c.add(i*2*ms+ms, server, phone, 1500).iface = 1 // the same packet, captured on another interface
	}
	if r := built(t, c, Options{Direction: Down}); r.Full != 599 || r.Trace.LengthMs() != 998 {
		t.Errorf("%d opportunities", r.Full)
	}
}

func TestBundlesAndSmallPackets(t *testing.T) {
	c := &capture{}
	c.add(0, phone, server, 60).opens = true
	c.add(0, server, phone, 1400)
	c.add(10*ms, server, phone, 2760)   // two of 1400 with one header
	c.add(20*ms, server, phone, 600)    // the end of an answer
	c.add(30*ms, server, phone, 13_640) // ten
	r := built(t, c, Options{Direction: Down})
	if r.MTU != 1400 || r.Full != 12 || r.Bundles != 2 || r.Small != 1 || r.Trace.At(1) != 10 || r.Trace.At(2) != 30 {
		t.Errorf("%+v", r)
	}
	if _, err := build((*c)[:2], Options{Direction: Down}); err == nil || !strings.Contains(err.Error(), "no packets of full size (1400 bytes) in the requested time") {
		t.Error(err)
	}
}

func TestHeadersAreRead(t *testing.T) {
	v4 := append([]byte{0x45, 0, 5, 0xdc, 0, 0, 0x40, 0, 64, protocolTCP, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1}, 0x12, 0x67, 0, 80)
	v4 = append(v4, make([]byte, 16)...)
	v4[33] = flagSYN
	v6 := append([]byte{0x60, 0, 0, 0, 0, 100, protocolUDP, 64}, make([]byte, 32)...)
	v6[23], v6[39] = 1, 2
	v6 = append(v6, 0, 7, 0, 9)
	change := func(packet []byte, at int, to ...byte) []byte {
		changed := append([]byte{}, packet...)
		copy(changed[at:], to)
		return changed
	}
	for _, c := range []struct {
		name   string
		packet []byte
		want   seen
	}{
		{"IPv4", v4, seen{protocol: protocolTCP, source: phone, target: server, bytes: 1500, opens: true}},
		{"SYN and ACK", change(v4, 33, flagSYN|flagACK), seen{protocol: protocolTCP, source: phone, target: server, bytes: 1500, isOpened: true}},
		{"captured up to the ports", v4[:24], seen{protocol: protocolTCP, source: phone, target: server, bytes: 1500}},
		{"no length", change(v4, 2, 0, 0), seen{protocol: protocolTCP, source: phone, target: server, bytes: 9000, opens: true}},
		{"IPv6", v6, seen{protocol: protocolUDP, source: netip.MustParseAddrPort("[::1]:7"), target: netip.MustParseAddrPort("[::2]:9"), bytes: 140}},
	} {
		if got, ok := decode(c.packet, 9000); !ok || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, ok)
		}
	}
	for name, packet := range map[string][]byte{
		"nothing": nil, "cut": v4[:23], "a fragment": change(v4, 6, 0, 5), "ICMP": change(v4, 9, 1), "no IP": change(v4, 0, 0x95),
		"a short header": change(v4, 0, 0x44), "cut IPv6": v6[:39],
	} {
		if got, ok := decode(packet, 9000); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// write writes a pcap of raw IPv4 TCP packets from the server to the phone at the given times, and cuts off the last
// bytes.
func write(t *testing.T, times []int64, cut int) string {
	t.Helper()
	file := binary.LittleEndian.AppendUint32(nil, 0xa1b23c4d) // in nanoseconds
	file = append(file, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 101, 0, 0, 0)
	for _, at := range times {
		ip := append([]byte{0x45, 0, 5, 0xdc, 0, 0, 0, 0, 64, protocolTCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}, 0, 80, 0x12, 0x67)
		for _, field := range []uint32{uint32(at / 1e9), uint32(at % 1e9), uint32(len(ip)), 1500} {
			file = binary.LittleEndian.AppendUint32(file, field)
		}
		file = append(file, ip...)
	}
	path := filepath.Join(t.TempDir(), "phone-wlan0.pcap")
	if err := os.WriteFile(path, file[:len(file)-cut], 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCaptureOfAFile(t *testing.T) {
	path := write(t, []int64{5e9, 5e9 + 3*ms, 5e9 + 3*ms, 5e9 + 7*ms}, 0)
	options := Options{Direction: Up}
	r, err := Capture(path, options)
	if err != nil || string(r.Trace.Bytes()) != "3\n3\n7\n" || r.Cut {
		t.Errorf("%+v, %v", r, err)
	}
	if origin := r.Origin(path, options); origin.Title != "Recorded upstream" ||
		origin.Source != "phone-wlan0.pcap: TCP 10.0.0.1:80 → 10.0.0.2:4711, packets of 1500 bytes, from 0 s after the first one to the end; method of deng2014 §5" {
		t.Errorf("%+v", origin)
	}
	r, err = Capture(write(t, []int64{5e9, 5e9 + 3*ms, 5e9 + 7*ms}, 1), options)
	if err != nil || !r.Cut || string(r.Trace.Bytes()) != "3\n" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Capture(filepath.Join(t.TempDir(), "none"), options); err == nil || !strings.Contains(err.Error(), "none: no such file") {
		t.Error(err)
	}
}
