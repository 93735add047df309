package capfile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// pcap makes a file of frames, one second apart, the fraction being 5.
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

// block makes a block of pcapng.
func block(kind uint32, body ...byte) []byte {
	size := uint32(12 + len(body))
	b := binary.LittleEndian.AppendUint32(nil, kind)
	b = append(binary.LittleEndian.AppendUint32(b, size), body...)
	return binary.LittleEndian.AppendUint32(b, size)
}

var (
	section = block(blockSection,
		0x4d, 0x3c, 0x2b, 0x1a, // byte order
		1, 0, 0, 0, // version 1.0
		255, 255, 255, 255, 255, 255, 255, 255) // length not known
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
	orig   int
	link   int
	iface  string
}

func readAll(t *testing.T, name string, b []byte) ([]got, error) {
	t.Helper()
	f, err := New(name, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []got
	for {
		var r Record
		if err := f.Next(&r); err != nil {
			if err == io.EOF {
				err = nil
			}
			return all, err
		}
		all = append(all, got{r.TimeNS, string(r.Data), r.OrigLen, r.LinkType, f.Interfaces()[r.Iface].Name})
	}
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
		all, err := readAll(t, "dir/phone-wlan0.pcap", pcap(c.order, c.magic, "abcd", ""))
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
	all, err := readAll(t, "x.pcapng", file)
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
		all, err := readAll(t, name, b)
		if err != nil || len(all) != 1 || all[0].iface != "wlan0" {
			t.Errorf("%s: %v %v", name, all, err)
		}
	}
	if all, err := readAll(t, "cut.gz", gz.Bytes()[:gz.Len()-9]); !errors.Is(err, ErrCut) {
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
		all, err := readAll(t, c.name, c.file)
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

func TestMerge(t *testing.T) {
	var files []*File
	for _, b := range [][]byte{
		bytes.Join([][]byte{section, wlan0, enhanced(0, 1, "a001"), enhanced(0, 4, "a004"), enhanced(0, 3, "a003")}, nil),
		bytes.Join([][]byte{section, wlan0, enhanced(0, 2, "b002"), enhanced(0, 5, "b005")[:20]}, nil),
	} {
		f, err := New("x", bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	m := NewMerger(files)
	order := ""
	for r, _ := m.Next(); r != nil; r, _ = m.Next() {
		order += string(r.Data)
	}
	if order != "a001b002a004a003" || m.Err(0) != nil || !errors.Is(m.Err(1), ErrCut) {
		t.Errorf("%s, %v, %v", order, m.Err(0), m.Err(1))
	}
}
