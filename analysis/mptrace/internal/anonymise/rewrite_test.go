package anonymise

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/packet"
)

// rewritten returns what Rewrite writes.
func rewritten(t testing.TB, b []byte) ([]byte, error) {
	t.Helper()
	f, err := capfile.New("x", bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out bytes.Buffer
	err = New(key()).Rewrite(f, &out)
	return out.Bytes(), err
}

// record is a captured frame.
type record struct {
	capfile.Record
	frame    string
	linkType int
}

// records returns all frames of a capture.
func records(t testing.TB, b []byte) ([]record, error) {
	t.Helper()
	f, err := capfile.New("x", bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []record
	var batch capfile.Batch
	for {
		err := f.Read(&batch)
		for _, r := range batch.Records {
			all = append(all, record{r, string(r.Data), f.Interfaces()[r.Iface].LinkType})
			all[len(all)-1].Data = nil
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// block returns a pcapng block.
func block(order binary.AppendByteOrder, kind uint32, body ...any) []byte {
	var b []byte
	for _, part := range body {
		switch v := part.(type) {
		case int:
			b = order.AppendUint32(b, uint32(v))
		case string:
			b = append(b, v...)
			b = append(b, make([]byte, -len(v)&3)...)
		}
	}
	size := uint32(len(b) + 12)
	return order.AppendUint32(append(order.AppendUint32(order.AppendUint32(nil, kind), size), b...), size)
}

// option returns an option of a block.
func option(order binary.AppendByteOrder, code uint16, value string) string {
	return string(order.AppendUint16(order.AppendUint16(nil, code), uint16(len(value)))) + value + strings.Repeat("\xee", -len(value)&3)
}

// example returns a capture with every kind of block.
func example(order binary.AppendByteOrder) []byte {
	frame := "\x45\x00\x00\x1e\x00\x00\x00\x00\x40\xff\x00\x00\x0a\x01\x00\x01\xb9\x3c\xd8\x23secret, .."
	o := func(code uint16, value string) string { return option(order, code, value) }
	return bytes.Join([][]byte{
		block(order, capfile.BlockSection, 0x1a2b3c4d, string(order.AppendUint16(order.AppendUint16(nil, 1), 0)), 0, 0, o(1, "secret")+o(4, "secret")),
		block(order, capfile.BlockInterface, string(order.AppendUint16(nil, packet.LinkRaw))+"\x00\x00", 0,
			o(1, "secret")+o(2, "wlan0")+o(9, "\x06")+o(9, "secret")+o(12, "secret")+o(14, "12345678")+"\x00\x00\x00\x00"),
		block(order, 4, 1, "secret"),           // name resolution
		block(order, 10, 0x544c534b, "secret"), // TLS keys
		block(order, 0x80000bad, "secret"),
		block(order, capfile.BlockEnhanced, 0, 1, 2, len(frame), 1500, frame, o(1, "secret")+o(2, "flag")+o(4, "12345678")+o(2, "secret")),
		block(order, 3, len(frame), frame),
		block(order, 2, 0, 1, 3, len(frame), 1500, frame, o(2, "secret")),
		block(order, capfile.BlockStatistics, 0, 1, 2, o(2, "12345678")+o(5, "12345678")+o(1, "secret")),
	}, nil)
}

// TestBlocks: blocks and options that are not known to be free of names and
// content are left out, in both byte orders.
func TestBlocks(t *testing.T) {
	frame := "\x45\x00\x00\x1e\x00\x00\x00\x00\x40\xff\x00\x00" + string(parse(t, mapped(t, client))) + string(parse(t, mapped(t, server))) + strings.Repeat("\x00", 10)
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		o := func(code uint16, value string) string {
			return strings.ReplaceAll(option(order, code, value), "\xee", "\x00")
		}
		const end = "\x00\x00\x00\x00"
		want := bytes.Join([][]byte{
			block(order, capfile.BlockSection, 0x1a2b3c4d, string(order.AppendUint16(order.AppendUint16(nil, 1), 0)), -1, -1),
			block(order, capfile.BlockInterface, string(order.AppendUint16(nil, packet.LinkRaw))+"\x00\x00", 0,
				o(2, "wlan0")+o(9, "\x06")+o(14, "12345678")+end),
			block(order, capfile.BlockEnhanced, 0, 1, 2, len(frame), 1500, frame, o(2, "flag")+o(4, "12345678")+end),
			block(order, 3, len(frame), frame),
			block(order, 2, 0, 1, 3, len(frame), 1500, frame),
			block(order, capfile.BlockStatistics, 0, 1, 2, o(2, "12345678")+o(5, "12345678")+end),
		}, nil)
		if got, err := rewritten(t, example(order)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: %v\n% x\nwant\n% x", order, err, got, want)
		}
	}
}

// TestDamage: of a capture that is cut anywhere, or damaged, the blocks before
// the damage are written.
func TestDamage(t *testing.T) {
	b := example(binary.LittleEndian)
	whole, err := rewritten(t, b)
	if err != nil {
		t.Fatal(err)
	}
	lengths := map[int]bool{}
	for size := 4; size < len(b); size++ {
		got, err := rewritten(t, b[:size])
		if !bytes.HasPrefix(whole, got) || err != nil && !errors.Is(err, capfile.ErrCut) {
			t.Fatalf("%d bytes: %v, % x", size, err, got)
		}
		lengths[len(got)] = true
	}
	if len(lengths) != 6 {
		t.Errorf("%d different lengths", len(lengths))
	}
	broken := bytes.Clone(b)
	broken[len(b)-4]++
	if got, err := rewritten(t, broken); !errors.Is(err, capfile.ErrDamaged) || len(got) == 0 || !bytes.HasPrefix(whole, got) {
		t.Errorf("%v, % x", err, got)
	}
}

func TestRefused(t *testing.T) {
	pcap := append(bytesOf(t, "d4c3b2a1 0200 0400 00000000 00000000 ffff0000 01000000"), make([]byte, 16)...)
	if _, err := rewritten(t, pcap); err == nil {
		t.Error("a pcap file was accepted")
	}
	order := binary.LittleEndian
	radiotap := append(block(order, capfile.BlockSection, 0x1a2b3c4d, 1, -1, -1), block(order, capfile.BlockInterface, 127, 0)...)
	if got, err := rewritten(t, radiotap); err != nil || len(got) == 0 {
		t.Errorf("an interface without frames: %v", err)
	}
	if _, err := rewritten(t, append(radiotap, block(order, capfile.BlockEnhanced, 0, 0, 0, 4, 4, "abcd")...)); err == nil ||
		errors.Is(err, capfile.ErrDamaged) || errors.Is(err, capfile.ErrCut) {
		t.Errorf("a frame of an unknown link type: %v", err)
	}
	if err := New(key()).Rewrite(open(t, example(order)), failing{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("the output failed: %v", err)
	}
}

func open(t testing.TB, b []byte) *capfile.File {
	t.Helper()
	f, err := capfile.New("x", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// failing is an output that fails.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestCaptures compares with stored checksums of the replaced captures. They
// were made by the Python code that this package superseded.
func TestCaptures(t *testing.T) {
	list, err := os.ReadFile("testdata/captures.sha256")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		f, err := capfile.Open("../../testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.New()
		err = New(key()).Rewrite(f, hash)
		f.Close()
		if got := fmt.Sprintf("%x", hash.Sum(nil)); err != nil || got != want {
			t.Errorf("%s: %v, checksum %s", name, err, got)
		}
	}
}
