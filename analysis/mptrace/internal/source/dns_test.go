package source

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// datagram returns a UDP datagram over Ethernet and IPv4.
func datagram(port uint16, message []byte) []byte {
	be := binary.BigEndian
	f := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0}
	f = be.AppendUint16(f, uint16(28+len(message)))
	f = append(f, 0, 1, 0, 0, 64, 17, 0, 0, 10, 9, 9, 53, 10, 1, 0, 1)
	f = be.AppendUint16(be.AppendUint16(f, port), 40000)
	f = be.AppendUint16(be.AppendUint16(f, uint16(8+len(message))), 0)
	return append(f, message...)
}

// toldOf lists the content of blocks in order: S and the number of a segment,
// or A and the message of an answer, with its time. inUse blocks are in use at
// once.
func toldOf(s *Source, inUse int) (told []string) {
	s.options.Answer = func(message []byte, timeNS int64) {
		told = append(told, fmt.Sprint("A", string(message), " ", timeNS))
	}
	tell := func(b *Block) {
		for p := range s.Packets(b) {
			told = append(told, fmt.Sprint("S", segmentOf(p), " ", p.TimeNS))
		}
	}
	ring := make([]Block, inUse)
	for turn := 0; ; turn++ {
		b := &ring[turn%inUse]
		tell(b)
		if !s.Next(b) {
			for i := 1; i < inUse; i++ {
				tell(&ring[(turn+i)%inUse])
			}
			return told
		}
	}
}

// TestAnswersInTheirPlace merges captures of segments, answers and other
// datagrams, in random order and number, read in small batches.
func TestAnswersInTheirPlace(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for round := range 30 {
		var names []string
		type event struct {
			timeNS int64
			text   string
		}
		var want []event
		number := uint32(0)
		segments := random.IntN(9) // segments per ten frames
		for i := range 1 + random.IntN(3) {
			b := append(sectionBlock(), interfaceBlock(1, "wlan0")...)
			now := int64(i)
			for range random.IntN(3000) {
				now += 10 + int64(random.IntN(4))*10
				number++
				switch n := random.IntN(10); {
				case n < segments:
					b = enhanced(b, 0, now, bulkFrame(1, number, false), 1514)
					want = append(want, event{now, fmt.Sprint("S", number, " ", now)})
				case n < 9:
					message := fmt.Sprint(number, strings.Repeat("x", random.IntN(100)))
					b = enhanced(b, 0, now, datagram(53, []byte(message)), 142)
					want = append(want, event{now, fmt.Sprint("A", message, " ", now)})
				default:
					b = enhanced(b, 0, now, datagram([]uint16{443, 5353, 40000}[random.IntN(3)], []byte("other")), 47)
				}
			}
			names = append(names, writeFile(t, fmt.Sprintf("%d.pcapng", i), b))
		}
		slices.SortStableFunc(want, func(a, b event) int { return int(a.timeNS - b.timeNS) })
		for inUse := 1; inUse <= 3; inUse++ {
			s := Open(names, Options{})
			for _, in := range s.inputs {
				in.size = 64 << random.IntN(12)
			}
			got := toldOf(s, inUse)
			if len(got) != len(want) {
				t.Fatalf("round %d, %d blocks in use: %d were told, want %d", round, inUse, len(got), len(want))
			}
			for i, w := range want {
				if got[i] != w.text {
					t.Fatalf("round %d, %d blocks in use: %q at place %d, want %q", round, inUse, got[i], i, w.text)
				}
			}
		}
	}
}

// TestAnswersThatAreNone: fragments, truncated and undecodable frames are no
// answers.
func TestAnswersThatAreNone(t *testing.T) {
	whole := datagram(53, []byte("yes"))
	changed := func(at int, to byte) []byte {
		f := bytes.Clone(whole)
		f[at] = to
		return f
	}
	b := append(append(sectionBlock(), interfaceBlock(1, "wlan0")...), interfaceBlock(105, "mon0")...)
	for i, f := range [][]byte{
		changed(20, 0x20), changed(21, 1), // first and later fragment
		whole[:len(whole)-1], whole[:42], // cut in its payload, and before it
		changed(34, 1),  // from another port
		changed(23, 33), // DCCP
		whole,
	} {
		b = enhanced(b, 0, int64(i), f, len(whole))
	}
	b = enhanced(b, 1, 99, whole, len(whole))
	s := Open([]string{writeFile(t, "x.pcapng", b)}, Options{})
	if told := toldOf(s, 1); !slices.Equal(told, []string{"Ayes 6"}) {
		t.Errorf("%q", told)
	}
}

// TestAnswersAlone: a block can consist of answers without segments.
func TestAnswersAlone(t *testing.T) {
	b := append(sectionBlock(), interfaceBlock(1, "wlan0")...)
	for i := range 3 {
		b = enhanced(b, 0, int64(i), datagram(53, []byte{'0' + byte(i)}), 43)
	}
	name := writeFile(t, "x.pcapng", b)
	if told := toldOf(Open([]string{name}, Options{}), 1); !slices.Equal(told, []string{"A0 0", "A1 1", "A2 2"}) {
		t.Errorf("%q", told)
	}
	s := Open([]string{name}, Options{})
	for packets := range blocks(s) {
		if len(packets) > 0 {
			t.Error(packets)
		}
	}
	if s.Files()[0].Packets != 3 || s.Files()[0].TCP != 0 {
		t.Errorf("%+v", s.Files()[0])
	}
}
