package source

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// frame is a frame of a generated capture, identified by its segment number.
type frame struct {
	timeNS  int64
	segment uint32
}

// frameBytes returns the captured bytes of a frame.
func frameBytes(f frame) []byte {
	if f.segment == 0 {
		return []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1}
	}
	return bulkFrame(1, f.segment, false)
}

// write writes a capture of frames on one interface. Segment 0 means an ARP
// frame, which is not a segment.
func write(tb testing.TB, name string, frames []frame) string {
	tb.Helper()
	b := append(sectionBlock(), interfaceBlock(1, "wlan0")...)
	for _, f := range frames {
		if f.segment == 0 {
			b = enhanced(b, 0, f.timeNS, frameBytes(f), 42)
			continue
		}
		b = enhanced(b, 0, f.timeNS, frameBytes(f), 1542)
	}
	return writeFile(tb, name, b)
}

func writeFile(tb testing.TB, name string, b []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// segmentOf returns the number that was passed to bulkFrame.
func segmentOf(p *packet.Packet) uint32 { return (p.Seq - 1000) / 1448 }

// merged returns the specified order of segments: the earliest next frame; for
// equal times, that of the file that starts first.
func merged(files [][]frame) (segments []uint32) {
	files = slices.DeleteFunc(slices.Clone(files), func(f []frame) bool { return len(f) == 0 })
	slices.SortStableFunc(files, func(a, b []frame) int {
		return cmp.Or(cmp.Compare(a[0].timeNS, b[0].timeNS), bytes.Compare(frameBytes(a[0]), frameBytes(b[0])))
	})
	for {
		first := -1
		for i, f := range files {
			if len(f) > 0 && (first < 0 || f[0].timeNS < files[first][0].timeNS) {
				first = i
			}
		}
		if first < 0 {
			return segments
		}
		if s := files[first][0].segment; s != 0 {
			segments = append(segments, s)
		}
		files[first] = files[first][1:]
	}
}

// TestMergeProperty merges captures with equal times, disorder, frames without
// segments and random lengths, and compares with the simple algorithm.
func TestMergeProperty(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 40 {
		var files [][]frame
		var names []string
		number := uint32(0)
		for i := range 1 + random.IntN(4) {
			now, disorder := int64(1000), random.IntN(3)
			frames := make([]frame, random.IntN(2000))
			for j := range frames {
				now += int64(random.IntN(4) * random.IntN(30))
				frames[j].timeNS = now
				if random.IntN(10) < disorder {
					frames[j].timeNS -= int64(random.IntN(100))
				}
				if random.IntN(8) > 0 {
					number++
					frames[j].segment = number
				}
			}
			files = append(files, frames)
			names = append(names, write(t, fmt.Sprintf("%d.pcapng", i), frames))
		}
		s := Open(names, Options{})
		for _, in := range s.inputs {
			in.size = 64 << random.IntN(12)
		}
		var got []uint32
		for packets := range blocks(s) {
			if len(packets) > blockSize {
				t.Fatalf("a block of %d packets", len(packets))
			}
			for i := range packets {
				got = append(got, segmentOf(&packets[i]))
			}
		}
		if want := merged(files); !slices.Equal(got, want) {
			t.Fatalf("round %d: %d packets, want %d", round, len(got), len(want))
		}
		for i, row := range s.Files() {
			segments := slices.DeleteFunc(slices.Clone(files[i]), func(f frame) bool { return f.segment == 0 })
			if row.Packets != int64(len(files[i])) || row.TCP != int64(len(segments)) || row.Partial {
				t.Errorf("round %d: %+v", round, row)
			}
		}
	}
}

// TestBlocksInFlight: a block does not change while others are filled.
func TestBlocksInFlight(t *testing.T) {
	a, b := bulk(t, "a.pcapng", "wlan0", 1, 3000, 0), bulk(t, "b.pcapng", "rmnet0", 2, 3000, 3_000)
	s := Open([]string{a, b}, Options{})
	for _, in := range s.inputs {
		in.size = 4096
	}
	const blocks = 5
	var ring [blocks]Block
	var said [blocks][]string
	for turn := 0; ; turn++ {
		i := turn % blocks
		if now := sayAll(s, &ring[i]); !slices.Equal(now, said[i]) {
			t.Fatalf("block %d changed", turn-blocks)
		}
		more := s.Next(&ring[i])
		if said[i] = sayAll(s, &ring[i]); !more {
			break
		}
	}
	if files := s.Files(); files[0].Packets != 3000 || files[1].Packets != 3000 {
		t.Errorf("%+v", files)
	}
}

func sayAll(s *Source, b *Block) (said []string) {
	for p := range s.Packets(b) {
		said = append(said, fmt.Sprintf("%+v", *p))
	}
	return said
}

// TestPiecesAreUsedAgain: memory does not grow with the file.
func TestPiecesAreUsedAgain(t *testing.T) {
	s := Open([]string{bulk(t, "a.pcapng", "wlan0", 1, 60_000, 0), bulk(t, "b.pcapng", "rmnet0", 2, 60_000, 3_000)}, Options{})
	for _, in := range s.inputs {
		in.size = 4096
	}
	var b Block
	for s.Next(&b) {
	}
	if n := len(s.free) + len(b.batches); n > 3*(moreBatches+2) {
		t.Errorf("%d batches for one block", n)
	}
}

// TestSparseSegments: a block does not keep a whole file in memory for the few
// segments in it.
func TestSparseSegments(t *testing.T) {
	frames := make([]frame, 30_000)
	for i := range frames {
		if i%100 == 99 {
			frames[i].segment = uint32(i)
		}
	}
	s := Open([]string{write(t, "a.pcapng", frames)}, Options{})
	s.inputs[0].size = 4096
	var b Block
	for s.Next(&b) {
		decoded(s, &b)
		if len(b.batches) > moreBatches+1 {
			t.Fatalf("%d batches in a block", len(b.batches))
		}
	}
	if s.Files()[0].TCP != 300 {
		t.Errorf("%+v", s.Files()[0])
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	s := Open([]string{bulk(t, "a.pcapng", "wlan0", 1, 200_000, 0)}, Options{})
	defer s.Close()
	var b Block
	s.Next(&b)
	for range 10 {
		s.Next(&b)
	}
	if n := testing.AllocsPerRun(200, func() { s.Next(&b) }); n > 0 {
		t.Errorf("%v allocations per block", n)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	whole := bulk(t, "a.pcapng", "wlan0", 1, 100, 0)
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	cut := writeFile(t, "cut.pcapng", content[:len(content)-5])
	text := writeFile(t, "text", []byte("hello, world"))
	empty := writeFile(t, "empty", nil)
	damaged := writeFile(t, "damaged.pcapng", append(bytes.Clone(content), make([]byte, 64)...))
	link := filepath.Join(dir, "link.pcapng")
	if err := os.Symlink(whole, link); err != nil {
		t.Fatal(err)
	}
	names := []string{whole, cut, filepath.Join(dir, "none"), dir, text, empty, damaged, link, whole}
	s := Open(names, Options{})
	total := 0
	for packets := range blocks(s) {
		total += len(packets)
	}
	none := []string{}
	want := []tables.File{
		{Name: whole, Format: "pcapng", Packets: 100, TCP: 100, Interfaces: []string{"wlan0"}},
		{Name: cut, Format: "pcapng", Packets: 99, TCP: 99, Interfaces: []string{"wlan0"}, Partial: true, Error: "cut short after packet 99"},
		{Name: names[2], Interfaces: none, Partial: true, Error: "no such file or directory"},
		{Name: dir, Interfaces: none, Partial: true, Error: "is a directory"},
		{Name: text, Interfaces: none, Partial: true, Error: "not a pcap or pcapng file"},
		{Name: empty, Interfaces: none, Partial: true, Error: "empty file"},
		{
			Name: damaged, Format: "pcapng", Packets: 100, TCP: 100, Interfaces: []string{"wlan0"},
			Partial: true, Error: "damaged: a block of 0 bytes after packet 100",
		},
		{Name: link, Interfaces: none, Partial: true, Error: "the same file as " + whole},
		{Name: whole, Interfaces: none, Partial: true, Error: "the same file as " + whole},
	}
	for i, row := range s.Files() {
		if !reflect.DeepEqual(row, want[i]) {
			t.Errorf("\n got %+v\nwant %+v", row, want[i])
		}
	}
	if total != 299 {
		t.Errorf("%d packets", total)
	}
}

func TestNoFiles(t *testing.T) {
	s := Open(nil, Options{})
	var b Block
	if s.Next(&b) || len(s.Files()) != 0 || len(s.Interfaces()) != 0 {
		t.Error("packets from nowhere")
	}
}

func TestWarnings(t *testing.T) {
	segment := bulkFrame(1, 1, false)
	changed := func(at int, b byte) []byte {
		f := bytes.Clone(segment)
		f[at] = b
		return f
	}
	b := append(append(sectionBlock(), interfaceBlock(1, "wlan0")...), interfaceBlock(105, "mon0")...)
	for i, f := range [][]byte{
		segment,
		changed(14, 0x44),          // IHL of 4
		segment[:20],               // cut in the IP header
		changed(20, 0x20),          // first fragment
		changed(21, 1),             // later fragment
		segment[:70], segment[:60], // cut in the options
		changed(67, 12),                       // DSS of 12 bytes with a mapping
		changed(23, 17),                       // UDP
		append(changed(12, 0x86)[:13], 0xdd),  // IPv6 without more bytes
		{12: 0x86, 13: 0xdd, 14: 0x60, 63: 0}, // IPv6, cut in its options
		changed(23, 47),                       // GRE
		changed(16, 0xff),                     // longer than its frame
	} {
		b = enhanced(b, 0, int64(i), f, 1542)
	}
	b = enhanced(b, 1, 99, segment, 1542)
	s := Open([]string{writeFile(t, "x.pcapng", b)}, Options{})
	for range blocks(s) {
	}
	var got tables.Warnings
	s.Warnings(&got)
	want := tables.Warnings{
		FramesMalformed: 1, FramesTruncated: 2, FramesFragment: 1, FramesHidden: 1, FramesUnknownLink: 1,
		SegmentsFragmented: 1, OptionsCut: 2, OptionsMalformed: 1, FramesTunnelled: 1, SegmentsOverlong: 1,
	}
	if got != want {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	if row := s.Files()[0]; row.Packets != 14 || row.TCP != 6 || !slices.Equal(row.Interfaces, []string{"wlan0", "mon0"}) {
		t.Errorf("%+v", row)
	}
}

func TestRewrite(t *testing.T) {
	seen := 0
	s := Open([]string{bulk(t, "a.pcapng", "wlan0", 1, 600, 5)}, Options{Rewrite: func(p *packet.Packet) {
		if p.TimeNS != 5+int64(seen)*10_000 {
			t.Fatalf("packet %d at %d ns", seen, p.TimeNS)
		}
		seen++
		p.SrcPort = 7
	}})
	for packets := range blocks(s) {
		for i := range packets {
			if packets[i].SrcPort != 7 {
				t.Fatal("not rewritten")
			}
		}
	}
	if seen != 600 {
		t.Errorf("%d packets", seen)
	}
}

// TestOrderOfFilesDoesNotMatter: records with equal times are in the same order
// for any order of the files.
func TestOrderOfFilesDoesNotMatter(t *testing.T) {
	one := write(t, "a.pcapng", []frame{{1000, 1}, {2000, 2}, {3000, 3}})
	two := write(t, "b.pcapng", []frame{{1000, 11}, {2000, 12}, {3000, 13}})
	other := bulk(t, "c.pcapng", "rmnet0", 2, 3, 1000)
	var orders [][]uint32
	for _, names := range [][]string{{one, two, other}, {other, two, one}, {two, other, one}} {
		s := Open(names, Options{})
		var order []uint32
		for packets := range blocks(s) {
			for _, p := range packets {
				order = append(order, p.Seq, uint32(p.DstPort))
			}
		}
		for i, name := range names {
			if s.Files()[i].Name != name {
				t.Errorf("%+v", s.Files())
			}
		}
		orders = append(orders, order)
	}
	if !slices.Equal(orders[0], orders[1]) || !slices.Equal(orders[0], orders[2]) {
		t.Errorf("%v", orders)
	}
}

// TestTimeStampOutOfPlace: a stamp that fits neither neighbour is repaired; a
// clock change is not.
func TestTimeStampOutOfPlace(t *testing.T) {
	const hours = 10 * 3600e9
	for name, c := range map[string]struct {
		times, want []int64
		repaired    int64
	}{
		"ahead once":     {[]int64{hours, 2 * hours, hours + 5, hours + 6}, []int64{hours, hours, hours + 5, hours + 6}, 1},
		"back once":      {[]int64{hours, 7, hours + 5, hours + 6}, []int64{hours, hours, hours + 5, hours + 6}, 1},
		"ahead twice":    {[]int64{hours, 2 * hours, 2 * hours, hours + 6}, []int64{hours, hours, hours, hours + 6}, 2},
		"ahead for good": {[]int64{hours, 2 * hours, 2*hours + 5}, []int64{hours, 2 * hours, 2*hours + 5}, 0},
		"back for good":  {[]int64{hours, 7, 8}, []int64{hours, 7, 8}, 0},
		"the last":       {[]int64{hours, hours + 1, 2 * hours}, []int64{hours, hours + 1, 2 * hours}, 0},
	} {
		var frames []frame
		for i, timeNS := range c.times {
			frames = append(frames, frame{timeNS, uint32(i + 1)})
		}
		s := Open([]string{write(t, "a.pcapng", frames)}, Options{})
		var got []int64
		for packets := range blocks(s) {
			for _, p := range packets {
				got = append(got, p.TimeNS)
			}
		}
		var w tables.Warnings
		if s.Warnings(&w); !slices.Equal(got, c.want) || w.TimestampsRepaired != c.repaired {
			t.Errorf("%s: %v, %+v", name, got, w)
		}
	}
}
