package loopback

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"mplab/analysis/mptrace/internal/fixture"
	"mplab/analysis/mptrace/packet"
)

// segment parses a packet: SOURCE > DESTINATION FLAGS SEQ ACK PAYLOAD.
func segment(t *testing.T, text string) *packet.Packet {
	t.Helper()
	var src, dst, flags string
	p := &packet.Packet{}
	if _, err := fmt.Sscanf(text, "%s > %s %s %d %d %d", &src, &dst, &flags, &p.Seq, &p.Ack, &p.Payload); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	from, to := fixture.End(src), fixture.End(dst)
	p.Src, p.SrcPort, p.Dst, p.DstPort = from.Addr, from.Port, to.Addr, to.Port
	for i, letter := range "FSRPA" {
		if strings.ContainsRune(flags, letter) {
			p.Flags |= 1 << i
		}
	}
	return p
}

func written(p *packet.Packet) string {
	flags := ""
	for i, letter := range "FSRPA" {
		if p.Flags&(1<<i) != 0 {
			flags += string(letter)
		}
	}
	return fmt.Sprintf("%v > %v %s %d %d %d", netip.AddrPortFrom(p.Src.Netip(), p.SrcPort), netip.AddrPortFrom(p.Dst.Netip(), p.DstPort), flags, p.Seq, p.Ack, p.Payload)
}

// through passes packets, one per line, through a joiner.
func through(t *testing.T, j *Joiner, lines string) []string {
	t.Helper()
	var out []string
	now := int64(0)
	for _, line := range trimmed(lines) {
		if seconds, pause := strings.CutPrefix(line, "pause "); pause {
			var s int64
			_, _ = fmt.Sscan(seconds, &s)
			now += s * 1e9
			continue
		}
		p := segment(t, line)
		now += 1e6
		p.TimeNS = now
		use := j.Rewrite(p)
		for _, r := range j.Ready() {
			out = append(out, written(&r))
		}
		if use {
			out = append(out, written(p))
		}
	}
	for _, r := range j.Flush() {
		out = append(out, written(&r))
	}
	return out
}

const (
	toRedirect = `
	10.0.0.2:4000 > 127.0.0.1:8123 S 100 0 0
	9.9.9.9:443 > 10.0.0.2:4000 SA 500 101 0
	10.0.0.2:4000 > 127.0.0.1:8123 A 101 501 0
	10.0.0.2:4000 > 127.0.0.1:8123 PA 101 501 50
	9.9.9.9:443 > 10.0.0.2:4000 PA 501 151 70
	10.0.0.2:4000 > 127.0.0.1:8123 FA 151 571 0
	9.9.9.9:443 > 10.0.0.2:4000 FA 571 152 0`
	fromRedirect = `
	10.0.0.2:4000 > 9.9.9.9:443 S 100 0 0
	127.0.0.1:8123 > 10.0.0.2:4000 SA 500 101 0
	10.0.0.2:4000 > 9.9.9.9:443 A 101 501 0
	10.0.0.2:4000 > 9.9.9.9:443 PA 101 501 50
	127.0.0.1:8123 > 10.0.0.2:4000 PA 501 151 70
	10.0.0.2:4000 > 9.9.9.9:443 FA 151 571 0
	127.0.0.1:8123 > 10.0.0.2:4000 FA 571 152 0`
)

// trimmed returns the lines of a text without surrounding white space.
func trimmed(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

func whole(lines string) []string {
	return trimmed(strings.ReplaceAll(lines, "127.0.0.1:8123", "9.9.9.9:443"))
}

func TestBothHalvesBecomeOneConnection(t *testing.T) {
	six := func(s string) string {
		return strings.NewReplacer("127.0.0.1:8123", "[::1]:8123", "9.9.9.9:443", "[2001:db8::9]:443", "10.0.0.2:4000", "[2001:db8::2]:4000").Replace(s)
	}
	for name, lines := range map[string]string{"to": toRedirect, "from": fromRedirect, "to, IPv6": six(toRedirect), "from, IPv6": six(fromRedirect)} {
		for _, port := range []uint16{0, 8123} {
			j := New(Options{Port: port})
			want := whole(lines)
			if strings.Contains(name, "6") {
				want = whole(strings.ReplaceAll(lines, "[::1]:8123", "[2001:db8::9]:443"))
			}
			if got := through(t, j, lines); !slices.Equal(got, want) || j.Joined != 1 {
				t.Errorf("%s, port %d: %d joined\n%s", name, port, j.Joined, strings.Join(got, "\n"))
			}
		}
	}
}

func TestAnotherPortIsLeftAlone(t *testing.T) {
	for _, lines := range []string{toRedirect, fromRedirect} {
		j := New(Options{Port: 1984})
		if got, want := through(t, j, lines), trimmed(lines); !slices.Equal(got, want) || j.Joined != 0 {
			t.Errorf("%d joined\n%s", j.Joined, strings.Join(got, "\n"))
		}
	}
}

// TestUnchanged: these packets do not change, nor does their order.
func TestUnchanged(t *testing.T) {
	for name, lines := range map[string]string{
		"both halves are there": `
			10.0.0.2:4000 > 127.0.0.1:8123 S 100 0 0
			127.0.0.1:8123 > 10.0.0.2:4000 SA 500 101 0
			10.0.0.2:4000 > 127.0.0.1:8123 PA 101 501 50
			127.0.0.1:8123 > 10.0.0.2:4000 A 501 151 0`,
		"both halves are there, without a handshake": `
			10.0.0.2:4000 > 127.0.0.1:8123 PA 101 501 50
			127.0.0.1:8123 > 10.0.0.2:4000 A 501 151 0
			9.9.9.9:443 > 10.0.0.2:4000 A 501 151 0`,
		"a connection that never saw loopback": `
			10.0.0.2:4000 > 9.9.9.9:443 S 100 0 0
			9.9.9.9:443 > 10.0.0.2:4000 SA 500 101 0
			10.0.0.2:4000 > 9.9.9.9:443 PA 101 501 50`,
		"the numbers of the handshake do not fit": `
			10.0.0.2:4000 > 9.9.9.9:443 S 100 0 0
			127.0.0.1:8123 > 10.0.0.2:4000 SA 500 102 0
			127.0.0.1:8123 > 10.0.0.2:4000 PA 501 151 70`,
		"the numbers of the halves do not fit": `
			10.0.0.2:4000 > 127.0.0.1:8123 PA 101 501 50
			9.9.9.9:443 > 10.0.0.2:4000 PA 3000000000 151 70
			9.9.9.9:443 > 10.0.0.2:4000 PA 501 2000000000 70`,
		"another client": `
			10.0.0.2:4000 > 127.0.0.1:8123 PA 101 501 50
			9.9.9.9:443 > 10.0.0.2:4001 PA 501 151 70`,
	} {
		if got, want := through(t, New(Options{Port: 8123}), lines), trimmed(lines); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s", name, strings.Join(got, "\n"))
		}
	}
}

// TestHalvesWithoutAHandshakeAreJoinedByTheirNumbers checks that joining leaves packets
// from before both halves were seen unchanged.
func TestHalvesWithoutAHandshakeAreJoinedByTheirNumbers(t *testing.T) {
	for lines, before := range map[string]int{toRedirect: 1, fromRedirect: 2} {
		rest := strings.Join(strings.Split(strings.TrimSpace(lines), "\n")[3:], "\n")
		want := whole(rest)
		got := through(t, New(Options{Port: 8123}), rest)
		if !slices.Equal(got[before:], want[before:]) {
			t.Errorf("\n%s", strings.Join(got, "\n"))
		}
	}
}

func TestARedirectThatWasLearntJoinsWithoutAHandshake(t *testing.T) {
	lines := toRedirect + `
	10.0.0.2:4001 > 127.0.0.1:8123 PA 9101 7501 50
	8.8.8.8:80 > 10.0.0.2:4001 PA 7501 9151 70
	10.0.0.2:4001 > 127.0.0.1:8123 A 9151 7571 0`
	got := through(t, New(Options{}), lines)
	if last := got[len(got)-1]; last != "10.0.0.2:4001 > 8.8.8.8:80 A 9151 7571 0" {
		t.Error(last)
	}
}

func TestAClientPortIsUsedAgain(t *testing.T) {
	second := strings.NewReplacer(" S 100 ", " S 7100 ", "SA 500 101", "SA 500 7101", " 101 ", " 7101 ", "9.9.9.9", "8.8.8.8").Replace(toRedirect)
	j := New(Options{})
	got := through(t, j, toRedirect+second)
	want := append(whole(toRedirect), whole(strings.ReplaceAll(second, "127.0.0.1:8123", "8.8.8.8:443"))...)
	if !slices.Equal(got, want) || j.Joined != 2 {
		t.Errorf("%d joined\n%s", j.Joined, strings.Join(got, "\n"))
	}
}

func TestRepeatedAndRefusedSYNs(t *testing.T) {
	got := through(t, New(Options{}), `
		10.0.0.2:4000 > 127.0.0.1:8123 S 100 0 0
		10.0.0.2:4000 > 127.0.0.1:8123 S 100 0 0
		9.9.9.9:443 > 10.0.0.2:4000 RA 0 101 0
		10.0.0.2:4000 > 127.0.0.1:8123 S 100 0 0`)
	want := []string{
		"10.0.0.2:4000 > 9.9.9.9:443 S 100 0 0", "10.0.0.2:4000 > 9.9.9.9:443 S 100 0 0",
		"9.9.9.9:443 > 10.0.0.2:4000 RA 0 101 0", "10.0.0.2:4000 > 9.9.9.9:443 S 100 0 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n%s", strings.Join(got, "\n"))
	}
}

func TestASYNWithoutAnAnswerIsHeldForSomeTimeOnly(t *testing.T) {
	got := through(t, New(Options{}), `
		10.0.0.2:4000 > 127.0.0.1:8123 S 100 0 0
		10.0.0.2:5000 > 9.9.9.9:443 PA 1 1 1
		pause 4
		10.0.0.2:5000 > 9.9.9.9:443 PA 2 1 1
		10.0.0.2:4001 > 127.0.0.1:8123 S 200 0 0`)
	want := []string{
		"10.0.0.2:5000 > 9.9.9.9:443 PA 1 1 1", "10.0.0.2:4000 > 127.0.0.1:8123 S 100 0 0",
		"10.0.0.2:5000 > 9.9.9.9:443 PA 2 1 1", "10.0.0.2:4001 > 127.0.0.1:8123 S 200 0 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n%s", strings.Join(got, "\n"))
	}
}

func TestAHeldPacketOutlivesItsFrame(t *testing.T) {
	j := New(Options{})
	p := segment(t, "10.0.0.2:4000 > 127.0.0.1:8123 S 100 0 3")
	frame := []byte{2, 4, 5, 180, 'a', 'b', 'c'}
	p.Options, p.Data = frame[:4], frame[4:]
	if j.Rewrite(p) {
		t.Fatal("the SYN is not held")
	}
	clear(frame)
	*p = *segment(t, "9.9.9.9:443 > 10.0.0.2:4000 SA 500 101 0")
	j.Rewrite(p)
	ready := j.Ready()
	if len(ready) != 1 || !slices.Equal(ready[0].Options, []byte{2, 4, 5, 180}) || string(ready[0].Data) != "abc" {
		t.Errorf("%+v", ready)
	}
}

func TestMemoryIsBoundedAndEveryPacketComesOut(t *testing.T) {
	j := New(Options{Connections: 100})
	in, out := 0, 0
	for i := range 50_000 {
		p := &packet.Packet{Src: packet.Addr{Lo: 0xffff_0a000000 + uint64(i)}, SrcPort: uint16(i), Seq: uint32(i), Flags: packet.SYN,
			Dst: packet.Addr{Lo: 0xffff_7f000001}, DstPort: 8123}
		if i%3 == 0 {
			p.Dst.Lo = 0xffff_09090909
		}
		in++
		if j.Rewrite(p) {
			out++
		}
		out += len(j.Ready())
		if len(j.waiting.of) > 100 || len(j.joined.of) > 100 || len(j.held) > heldMax {
			t.Fatalf("%d wait, %d joined, %d held", len(j.waiting.of), len(j.joined.of), len(j.held))
		}
	}
	if out += len(j.Flush()); in != out {
		t.Errorf("%d packets in, %d out", in, out)
	}
}
