package capfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// pcap returns a file of frames, one second apart, with fraction 5.
func pcap(order binary.AppendByteOrder, magic uint32, frames ...string) []byte {
	b := order.AppendUint32(nil, magic)
	b = append(b, make([]byte, 12)...)
	b = order.AppendUint32(b, 65535)
	b = order.AppendUint32(b, 1)
	for i, f := range frames {
		for _, v := range []int{i + 1, 5, len(f), 1500} {
			b = order.AppendUint32(b, uint32(v))
		}
		b = append(b, f...)
	}
	return b
}

// block returns a little-endian pcapng block.
func block(kind uint32, body ...byte) []byte { return blockIn(binary.LittleEndian, kind, body) }

func blockIn(order binary.AppendByteOrder, kind uint32, body []byte) []byte {
	size := uint32(12 + len(body))
	b := append(order.AppendUint32(order.AppendUint32(nil, kind), size), body...)
	return order.AppendUint32(b, size)
}

var (
	section = block(blockSection,
		0x4d, 0x3c, 0x2b, 0x1a, // byte order
		1, 0, 0, 0, // version 1.0
		255, 255, 255, 255, 255, 255, 255, 255) // unknown length
	wlan0 = block(blockInterface,
		1, 0, 0, 0, // Ethernet
		0, 0, 4, 0, // snapshot length
		2, 0, 5, 0, 'w', 'l', 'a', 'n', '0', 0, 0, 0, // name
		9, 0, 1, 0, 9, 0, 0, 0, // nanoseconds
		0, 0, 0, 0)
	rmnet0 = block(blockInterface,
		101, 0, 0, 0, // raw IP
		0, 0, 4, 0,
		2, 0, 6, 0, 'r', 'm', 'n', 'e', 't', '0', 0, 0,
		9, 0, 1, 0, 0x8a, 0, 0, 0, // 1/1024 s
		14, 0, 8, 0, 100, 0, 0, 0, 0, 0, 0, 0, // 100 s later
		0, 0, 0, 0)
)

func enhanced(iface byte, low byte, data string) []byte {
	return block(blockEnhanced, append([]byte{
		iface, 0, 0, 0,
		0, 0, 0, 0, // time, high
		low, 0, 0, 0, // time, low
		byte(len(data)), 0, 0, 0,
		220, 5, 0, 0, // 1500 on the wire
	}, data...)...)
}

type got struct {
	timeNS int64
	data   string
	orig   uint32
	link   int
	iface  string
}

// readAll reads to the end, in batches of the given size.
func readAll(f *File, size int) ([]got, error) {
	var all []got
	b := Batch{Size: size}
	for {
		err := f.Read(&b)
		for _, r := range b.Records {
			i := f.Interfaces()[r.Iface]
			all = append(all, got{r.TimeNS, string(r.Data), r.OrigLen, i.LinkType, i.Name})
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// read reads a capture in several ways, which must agree.
func read(t *testing.T, name string, b []byte) ([]got, error) {
	t.Helper()
	f, err := New(name, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := readAll(f, 0)
	for _, way := range []struct {
		name string
		in   io.Reader
		size int
	}{
		{"a byte at a time", iotest.OneByteReader(bytes.NewReader(b)), 0},
		{"in batches of 16 bytes", bytes.NewReader(b), 16},
		{"in batches of 50 bytes", bytes.NewReader(b), 50},
		{"with the end told early", iotest.DataErrReader(bytes.NewReader(b)), 0},
	} {
		f, otherErr := New(name, way.in)
		if otherErr != nil {
			t.Fatalf("%s, %s: %v", name, way.name, otherErr)
		}
		other, otherErr := readAll(f, way.size)
		f.Close()
		if !slices.Equal(other, all) || fmt.Sprint(otherErr) != fmt.Sprint(err) {
			t.Errorf("%s, %s:\n got %v, %v\nwant %v, %v", name, way.name, other, otherErr, all, err)
		}
	}
	return all, err
}

func TestPcap(t *testing.T) {
	for _, c := range []struct {
		order    binary.AppendByteOrder
		magic    uint32
		fraction int64
	}{
		{binary.LittleEndian, 0xa1b2c3d4, 5000},
		{binary.BigEndian, 0xa1b2c3d4, 5000},
		{binary.LittleEndian, 0xa1b23c4d, 5},
		{binary.BigEndian, 0xa1b23c4d, 5},
	} {
		all, err := read(t, "dir/phone-wlan0.pcap", pcap(c.order, c.magic, "abcd", ""))
		want := got{1e9 + c.fraction, "abcd", 1500, 1, "wlan0"}
		if err != nil || len(all) != 2 || all[0] != want || all[1].timeNS != 2e9+c.fraction {
			t.Errorf("%x: %v %v", c.magic, all, err)
		}
	}
}

func TestPcapng(t *testing.T) {
	file := bytes.Join([][]byte{
		section, wlan0, rmnet0, block(0xbad, 1, 2, 3, 4), enhanced(0, 7, "abcd"), enhanced(1, 128, "efgh"),
		block(blockSimple, 4, 0, 0, 0, 'i', 'j', 'k', 'l'),
		section, rmnet0, enhanced(0, 0, "mnop"),
	}, nil)
	all, err := read(t, "x.pcapng", file)
	want := []got{
		{7, "abcd", 1500, 1, "wlan0"},
		{100_125_000_000, "efgh", 1500, 101, "rmnet0"},
		{100_125_000_000, "ijkl", 4, 1, "wlan0"},
		{100_000_000_000, "mnop", 1500, 101, "rmnet0"},
	}
	if err != nil || len(all) != len(want) {
		t.Fatalf("%v %v", all, err)
	}
	for i := range want {
		if all[i] != want[i] {
			t.Errorf("%+v, want %+v", all[i], want[i])
		}
	}
}

func TestModifiedPcap(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		b := pcap(order, 0xa1b2cd34)
		for _, data := range []string{"abcd", "efg"} {
			for _, v := range []int{1, 5, len(data), 1500, 3 /* interface */, 0x08000000 /* protocol, type */} {
				b = order.AppendUint32(b, uint32(v))
			}
			b = append(b, data...)
		}
		all, err := read(t, "phone.pcap", b)
		if want := []got{{1_000_005_000, "abcd", 1500, 1, ""}, {1_000_005_000, "efg", 1500, 1, ""}}; err != nil || !slices.Equal(all, want) {
			t.Errorf("%v: %v %v", order, all, err)
		}
	}
}

func TestBigEndianPcapng(t *testing.T) {
	be := binary.BigEndian
	bodyOf := func(words ...uint32) (b []byte) {
		for _, w := range words {
			b = be.AppendUint32(b, w)
		}
		return b
	}
	file := bytes.Join([][]byte{
		blockIn(be, blockSection, bodyOf(0x1a2b3c4d, 1<<16, 0xffffffff, 0xffffffff)),
		blockIn(be, blockInterface, append(bodyOf(1<<16, 0, 2<<16|4), "eth0"...)),
		blockIn(be, blockEnhanced, append(bodyOf(0, 0, 7, 4, 1500), "abcd"...)),
		blockIn(be, blockPacket, append(bodyOf(0<<16|3, 0, 8, 2, 1500), "ef\x00\x00"...)),
		blockIn(be, blockSimple, append(bodyOf(3), "ijk\x00"...)),
		section, wlan0, enhanced(0, 9, "mnop"),
	}, nil)
	all, err := read(t, "x.pcapng", file)
	want := []got{{7000, "abcd", 1500, 1, "eth0"}, {8000, "ef", 1500, 1, "eth0"}, {8000, "ijk", 3, 1, "eth0"}, {9, "mnop", 1500, 1, "wlan0"}}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%v %v", all, err)
	}
}

func TestStatistics(t *testing.T) {
	statistics := func(dropped byte) []byte {
		return block(blockStatistics, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // interface 1, time
			4, 0, 8, 0, 99, 0, 0, 0, 0, 0, 0, 0, // received
			5, 0, 8, 0, dropped, 0, 0, 0, 0, 0, 0, 0)
	}
	f, err := New("x", bytes.NewReader(bytes.Join([][]byte{section, wlan0, rmnet0, statistics(3), statistics(4)}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(f, 0); err != nil || f.Interfaces()[0].Dropped != 0 || f.Interfaces()[1].Dropped != 4 {
		t.Errorf("%+v %v", f.Interfaces(), err)
	}
}

// TestBatchesInFlight: a batch keeps its records while other batches are read.
func TestBatchesInFlight(t *testing.T) {
	file := bytes.Join([][]byte{section, wlan0, enhanced(0, 1, "abcd"), enhanced(0, 2, "efgh"), enhanced(0, 3, "ijkl")}, nil)
	f, err := New("x", bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	var batches [3]Batch
	for i := range batches {
		batches[i].Size = 40
		if err := f.Read(&batches[i]); err != nil || len(batches[i].Records) != 1 {
			t.Fatalf("%d: %d records, %v", i, len(batches[i].Records), err)
		}
	}
	for i := range batches {
		text += string(batches[i].Records[0].Data)
	}
	if err := f.Read(&batches[0]); text != "abcdefghijkl" || err != io.EOF || len(batches[0].Records) != 0 {
		t.Errorf("%s, %v", text, err)
	}
}

// TestLargeBlocks: a block larger than a batch is read if it is a packet, and
// skipped otherwise.
func TestLargeBlocks(t *testing.T) {
	large := strings.Repeat("x", 300_000)
	for _, c := range []struct {
		name string
		file [][]byte
		want int
		err  error
	}{
		{"packet", [][]byte{section, wlan0, enhanced32(large), enhanced(0, 7, "abcd")}, 2, nil},
		{"custom block", [][]byte{section, wlan0, block(0xbad, make([]byte, 3<<20)...), enhanced(0, 7, "abcd")}, 1, nil},
		{
			"section header",
			[][]byte{block(blockSection, append(bytes.Clone(section[8:24]), make([]byte, 1<<20)...)...), wlan0, enhanced(0, 7, "abcd")}, 1, nil,
		},
		{"custom block, cut", [][]byte{section, wlan0, enhanced(0, 7, "abcd"), block(0xbad, make([]byte, 3<<20)...)[:2<<20]}, 1, ErrCut},
		{"packet longer than any", [][]byte{section, wlan0, enhanced(0, 7, "abcd"), enhanced32(strings.Repeat("x", 1<<20))}, 1, ErrDamaged},
	} {
		f, err := New("x", bytes.NewReader(bytes.Join(c.file, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if all, err := readAll(f, 0); len(all) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d packets, %v", c.name, len(all), err)
		}
	}
}

func enhanced32(data string) []byte {
	le := binary.LittleEndian
	return block(blockEnhanced, append(le.AppendUint32(le.AppendUint32(make([]byte, 12), uint32(len(data))), 1500), data...)...)
}

// TestNonsenseLengthsTakeNoMemory: a length in the file never causes an
// allocation beyond the largest accepted record.
func TestNonsenseLengthsTakeNoMemory(t *testing.T) {
	huge := pcap(binary.LittleEndian, 0xa1b2c3d4, "abcd")
	binary.LittleEndian.PutUint32(huge[32:], 0xfffffff0)
	block := enhanced(0, 7, "abcd")
	binary.LittleEndian.PutUint32(block[4:], 0xfffffff0)
	skipped := bytes.Clone(block)
	binary.LittleEndian.PutUint32(skipped, 0xbad)
	for name, file := range map[string][]byte{
		"pcap": huge, "packet block": append(append(bytes.Clone(section), wlan0...), block...), "custom block": append(bytes.Clone(section), skipped...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = read(t, name, file)
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 16<<20 {
			t.Errorf("%s: %d bytes", name, after.TotalAlloc-before.TotalAlloc)
		}
	}
}

func TestIdleReaderEnds(t *testing.T) {
	f, err := New("x", io.MultiReader(bytes.NewReader(section), idle{}))
	if err != nil {
		t.Fatal(err)
	}
	if all, err := readAll(f, 0); len(all) != 0 || !errors.Is(err, ErrDamaged) || !errors.Is(err, io.ErrNoProgress) {
		t.Error(all, err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestCompressed(t *testing.T) {
	plain := pcap(binary.LittleEndian, 0xa1b2c3d4, "abcd")
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, _ = g.Write(plain)
	_ = g.Close()
	z, _ := zstd.NewWriter(&zst)
	_, _ = z.Write(plain)
	_ = z.Close()
	for name, b := range map[string][]byte{"p-wlan0.pcap.gz": gz.Bytes(), "p-wlan0.pcap.zst": zst.Bytes()} {
		all, err := read(t, name, b)
		if err != nil || len(all) != 1 || all[0].iface != "wlan0" {
			t.Errorf("%s: %v %v", name, all, err)
		}
	}
	if all, err := read(t, "cut.gz", gz.Bytes()[:gz.Len()-9]); !errors.Is(err, ErrCut) {
		t.Errorf("%v %v", all, err)
	}
}

func TestBadInput(t *testing.T) {
	whole := bytes.Join([][]byte{section, wlan0, enhanced(0, 7, "abcd"), enhanced(0, 8, "efgh")}, nil)
	old := pcap(binary.LittleEndian, 0xa1b2c3d4, "abcd", "efgh")
	long := pcap(binary.LittleEndian, 0xa1b2c3d4, "abcd")
	binary.LittleEndian.PutUint32(long[32:], 1<<30)
	for _, c := range []struct {
		name    string
		file    []byte
		packets int
		want    error
	}{
		{"empty", nil, 0, ErrEmpty},
		{"short", []byte("ab"), 0, ErrNotCapture},
		{"text", []byte("hello, world"), 0, ErrNotCapture},
		{"gzip of nothing", []byte{0x1f, 0x8b, 0, 0}, 0, ErrDamaged},
		{"pcap header cut", old[:20], 0, ErrCut},
		{"pcap cut in a record", old[:len(old)-1], 1, ErrCut},
		{"pcap cut in a record header", old[:24+20+3], 1, ErrCut},
		{"pcap with a huge record", long, 0, ErrDamaged},
		{"pcapng cut", whole[:len(whole)-1], 1, ErrCut},
		{"pcapng with an unknown interface", bytes.Join([][]byte{section, enhanced(0, 7, "abcd")}, nil), 0, ErrDamaged},
		{"pcapng of zeros", append(bytes.Clone(section), make([]byte, 100)...), 0, ErrDamaged},
	} {
		all, err := read(t, c.name, c.file)
		if len(all) != c.packets || !errors.Is(err, c.want) || (c.want == ErrCut && err.Error() != "cut short") {
			t.Errorf("%s: %d packets, %v", c.name, len(all), err)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || err.Error() != "is a directory" {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
