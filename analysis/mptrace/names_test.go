package mptrace

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mplab/analysis/mptrace/internal/join/loopback"
	"mplab/analysis/mptrace/tables"
)

// ip returns an IPv4 or IPv6 packet between two endpoints.
func ip(protocol byte, from, to netip.AddrPort, behindPorts []byte) []byte {
	be := binary.BigEndian
	size := uint16(4 + len(behindPorts))
	var b []byte
	if from.Addr().Is4() {
		b = be.AppendUint16([]byte{0x45, 0}, 20+size)
		b = append(b, 0, 1, 0, 0, 64, protocol, 0, 0)
	} else {
		b = be.AppendUint16([]byte{0x60, 0, 0, 0}, size)
		b = append(b, protocol, 64)
	}
	b = append(append(b, from.Addr().AsSlice()...), to.Addr().AsSlice()...)
	return append(be.AppendUint16(be.AppendUint16(b, from.Port()), to.Port()), behindPorts...)
}

// segment returns a TCP segment without options and payload.
func segment(from, to string, seq, ack uint32, flags byte) []byte {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, seq), ack)
	return ip(6, netip.MustParseAddrPort(from), netip.MustParseAddrPort(to), append(b, 0x50, flags, 255, 255, 0, 0, 0, 0))
}

// answered returns a DNS answer with one address for a name, in a UDP datagram.
func answered(from, to, name, address string) []byte {
	be := binary.BigEndian
	a := netip.MustParseAddr(address)
	kind := byte(1) // A
	if a.Is6() {
		kind = 28 // AAAA
	}
	m := []byte{0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0} // a response, with one question and one answer
	for label := range strings.SplitSeq(name, ".") {
		m = append(append(m, byte(len(label))), label...)
	}
	m = append(m, 0, 0, kind, 0, 1)                                            // IN
	m = append(m, 0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, byte(a.BitLen()/8)) // the question's name, IN, for 60 s
	m = append(m, a.AsSlice()...)
	udp := be.AppendUint16(be.AppendUint16(nil, uint16(8+len(m))), 0)
	return ip(17, netip.MustParseAddrPort(from), netip.MustParseAddrPort(to), append(udp, m...))
}

// at is a frame with its capture time in ms.
type at struct {
	ms    int
	frame []byte
}

// hello returns the frames of a handshake between two endpoints.
func hello(ms int, client, server string) []at {
	return []at{
		{ms, segment(client, server, 100, 0, 2)},
		{ms + 10, segment(server, client, 500, 101, 0x12)},
		{ms + 20, segment(client, server, 101, 501, 0x10)},
	}
}

// raw writes a pcap of raw IP packets.
func raw(t *testing.T, name string, frames ...at) string {
	t.Helper()
	le := binary.LittleEndian
	b := append(le.AppendUint32(nil, 0xa1b2c3d4), make([]byte, 16)...)
	b = le.AppendUint32(b, 101)
	for _, f := range frames {
		for _, v := range []int{1_700_000_000 + f.ms/1000, f.ms % 1000 * 1000, len(f.frame), len(f.frame)} {
			b = le.AppendUint32(b, uint32(v))
		}
		b = append(b, f.frame...)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// named analyses files with one to three threads and lists the named
// connections.
func named(t *testing.T, o Options, files ...string) string {
	t.Helper()
	var said [3]string
	for i := range said {
		o.Threads, o.Keep = i+1, tables.All
		r, err := Analyse(files, o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Warnings != (tables.Warnings{}) {
			t.Errorf("%+v", r.Warnings)
		}
		for _, c := range r.Connections {
			said[i] += strings.TrimSpace(fmt.Sprintf("%d to %s: %s %s", c.ClientPort, c.Server, c.Host, c.HostSource)) + "\n"
		}
	}
	for i, several := range said[1:] {
		if several != said[0] {
			t.Errorf("with %d threads:\n%swith one:\n%s", i+2, several, said[0])
		}
	}
	return said[0]
}

const (
	resolver4, client4 = "10.0.0.53:53", "10.0.0.1:5000"
	resolver6, client6 = "[fd00::53]:53", "[fd00::1]:5000"
)

func expect(t *testing.T, got string, want ...string) {
	t.Helper()
	if got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestNamesFromAnswersOverUDP: a connection has the name of the last DNS answer
// before its start that contains its server's address.
func TestNamesFromAnswersOverUDP(t *testing.T) {
	frames := []at{
		{0, answered(resolver4, client4, "one.example", "192.0.2.1")},
		{1, answered(resolver6, client6, "Six.Example", "2001:db8::6")},
	}
	frames = append(frames, hello(10, "10.0.0.1:1001", "192.0.2.1:443")...)
	frames = append(frames, hello(100, "[fd00::1]:1002", "[2001:db8::6]:443")...)
	frames = append(frames, hello(200, "10.0.0.1:1003", "192.0.2.3:443")...)
	frames = append(frames, at{300, answered(resolver4, client4, "two.example", "192.0.2.1")}, at{301, answered(resolver4, client4, "late.example", "192.0.2.3")})
	frames = append(frames, hello(400, "10.0.0.1:1004", "192.0.2.1:443")...)
	expect(t, named(t, Options{}, raw(t, "all.pcap", frames...)),
		"1001 to 192.0.2.1: one.example dns", "1002 to 2001:db8::6: six.example dns", "1003 to 192.0.2.3:", "1004 to 192.0.2.1: two.example dns")
}

// TestNamesFromAnotherCapture: the answers were captured on another interface.
func TestNamesFromAnotherCapture(t *testing.T) {
	wifi := raw(t, "phone-wlan0.pcap",
		at{5, answered(resolver4, client4, "one.example", "192.0.2.1")}, at{300, answered(resolver4, client4, "two.example", "192.0.2.1")})
	cellular := raw(t, "phone-rmnet0.pcap", append(hello(10, "10.1.0.1:1001", "192.0.2.1:443"), hello(310, "10.1.0.1:1002", "192.0.2.1:443")...)...)
	for _, files := range [][]string{{wifi, cellular}, {cellular, wifi}} {
		expect(t, named(t, Options{}, files...), "1001 to 192.0.2.1: one.example dns", "1002 to 192.0.2.1: two.example dns")
	}
}

// TestNamesBehindARedirect: DNS answers overtake a SYN that waits for its
// answer, and the joined connection has the name of the real server.
func TestNamesBehindARedirect(t *testing.T) {
	const client, server, redirect = "10.0.0.1:1001", "192.0.2.7:443", "127.0.0.1:8123"
	file := raw(t, "phone-lo.pcap",
		at{0, answered(resolver4, client4, "meant.example", "192.0.2.7")},
		at{1, answered(resolver4, client4, "redirect.example", "127.0.0.1")},
		at{10, segment(client, redirect, 100, 0, 2)},
		at{15, answered(resolver4, client4, "later.example", "192.0.2.7")},
		at{20, segment(server, client, 500, 101, 0x12)},
		at{30, segment(client, redirect, 101, 501, 0x10)},
	)
	for _, o := range []loopback.Options{{}, {Port: 8123}} {
		expect(t, named(t, Options{Loopback: &o}, file), "1001 to 192.0.2.7: meant.example dns")
	}
}

// TestNamesInTheirPlace: answers are processed at their place between the
// segments. A connection that has ended keeps its name, even if later answers
// evict it.
func TestNamesInTheirPlace(t *testing.T) {
	frames := []at{{0, answered(resolver4, client4, "one.example", "192.0.2.1")}}
	frames = append(frames, hello(10, "10.0.0.1:1001", "192.0.2.1:443")...)
	frames = append(frames, at{50, segment("10.0.0.1:1001", "192.0.2.1:443", 101, 501, 4)}) // RST
	frames = append(frames, hello(20_000, "10.0.0.1:1002", "192.0.2.2:443")...)
	for i := range 9 {
		frames = append(frames, at{30_000 + i, answered(resolver4, client4, fmt.Sprintf("n%d.example", i), "192.0.2.1")})
	}
	frames = append(frames, hello(31_000, "10.0.0.1:1003", "192.0.2.1:443")...)
	expect(t, named(t, Options{}, raw(t, "x.pcap", frames...)),
		"1001 to 192.0.2.1: one.example dns", "1002 to 192.0.2.2:", "1003 to 192.0.2.1: n8.example dns")
}

// TestWhatGivesNoName: questions, fragments, truncated datagrams and those of
// other ports yield no name.
func TestWhatGivesNoName(t *testing.T) {
	changed := func(at int, to byte) []byte {
		b := answered(resolver4, client4, "one.example", "192.0.2.1")
		b[at] = to
		return b
	}
	whole := changed(0, 0x45)
	for name, frame := range map[string][]byte{
		"a question":       changed(30, 0x01),
		"a first fragment": changed(6, 0x20),
		"a later fragment": changed(7, 1),
		"cut":              whole[:len(whole)-1],
		"headers alone":    whole[:28],
		"multicast DNS":    answered("10.0.0.53:5353", client4, "one.example", "192.0.2.1"),
		"to port 53":       answered(client4, resolver4, "one.example", "192.0.2.1"),
	} {
		file := raw(t, "x.pcap", append([]at{{0, frame}}, hello(10, "10.0.0.1:1001", "192.0.2.1:443")...)...)
		if got := named(t, Options{}, file); got != "1001 to 192.0.2.1:\n" {
			t.Errorf("%s: %s", name, got)
		}
	}
	file := raw(t, "x.pcap", append([]at{{0, whole}}, hello(10, "10.0.0.1:1001", "192.0.2.1:443")...)...)
	expect(t, named(t, Options{}, file), "1001 to 192.0.2.1: one.example dns")
}

// TestFloodOfNames: in a flood of answers, the newest addresses are kept.
func TestFloodOfNames(t *testing.T) {
	const answers = 40_000 // of which 32768 are kept
	frames := make([]at, 0, answers+6)
	for i := range answers {
		address := netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
		frames = append(frames, at{i, answered(resolver4, client4, fmt.Sprintf("n%d.example", i), address.String())})
	}
	frames = append(frames, hello(answers, "10.0.0.1:1001", "11.0.0.1:443")...)
	frames = append(frames, hello(answers+100, "10.0.0.1:1002", fmt.Sprintf("11.0.%d.%d:443", (answers-1)>>8, (answers-1)&255))...)
	expect(t, named(t, Options{}, raw(t, "x.pcap", frames...)), "1001 to 11.0.0.1:", "1002 to 11.0.156.63: n39999.example dns")
}
