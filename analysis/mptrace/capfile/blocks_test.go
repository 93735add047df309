package capfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// all keeps all options.
func all(uint16, []byte) bool { return true }

// blocksOf reads all blocks and writes them again.
func blocksOf(t *testing.T, in io.Reader) ([]byte, error) {
	t.Helper()
	f, err := New("x", in)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	blocks, err := NewBlocks(f)
	if err != nil {
		return nil, err
	}
	var out []byte
	for {
		block, err := blocks.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = block.Append(out, all)
	}
}

// TestBlocksAgain: blocks are written as they were read, in both byte orders.
// Options of sections and unknown blocks, of any size, are skipped.
func TestBlocksAgain(t *testing.T) {
	be := binary.BigEndian
	beSection := blockIn(be, blockSection, be.AppendUint64(be.AppendUint64(nil, 0x1a2b3c4d00010000), 1<<63))
	kept := [][]byte{
		section, wlan0, rmnet0,
		enhanced(1, 7, "abcd"),
		block(blockSimple, 4, 0, 0, 0, 'i', 'j', 'k', 'l'),
		block(blockPacket, append(make([]byte, 20), 2, 0, 4, 0, 1, 2, 3, 4, 0, 0, 0, 0)...),
		block(blockStatistics, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		beSection,
		blockIn(be, blockInterface, []byte{0, 101, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 'x', 0, 0, 0, 0, 0, 0, 0}),
	}
	b := bytes.Join(kept, nil)
	longSection := block(blockSection, append(bytes.Clone(section[8:24]), make([]byte, 1<<20)...)...)
	b = bytes.Join([][]byte{longSection, b[len(section):], block(0xbad, make([]byte, 2<<20)...)}, nil)
	// The last block is in a section of the other byte order.
	copy(b[len(b)-12-2<<20:], be.AppendUint32(be.AppendUint32(nil, 0xbad), 12+2<<20))
	copy(b[len(b)-4:], be.AppendUint32(nil, 12+2<<20))
	for name, in := range map[string]io.Reader{"": bytes.NewReader(b), "half reads": iotest.HalfReader(bytes.NewReader(b))} {
		got, err := blocksOf(t, in)
		if want := bytes.Join(kept, nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n% x\nwant\n% x", name, err, got, want)
		}
	}
}

func TestBlockParts(t *testing.T) {
	f, err := New("x", bytes.NewReader(bytes.Join([][]byte{section, wlan0, rmnet0, enhanced(1, 7, "abcd")}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := NewBlocks(f)
	if err != nil {
		t.Fatal(err)
	}
	var last Block
	for range 4 {
		if last, err = blocks.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if last.Type != BlockEnhanced || string(last.Frame) != "abcd" || last.LinkType != 101 || len(last.Fields) != 20 {
		t.Errorf("%+v", last)
	}
	if _, err := blocks.Next(); err != io.EOF {
		t.Error(err)
	}
}

func TestDamagedBlocks(t *testing.T) {
	start := bytes.Join([][]byte{section, wlan0}, nil)
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"cut in a header":        {enhanced(0, 7, "abcd")[:7], ErrCut},
		"cut in a block":         {enhanced(0, 7, "abcd")[:20], ErrCut},
		"cut in a skipped block": {block(0xbad, 1, 2, 3, 4)[:13], ErrCut},
		"two lengths":            {append(block(blockSimple, 0, 0, 0, 0)[:12], 20, 0, 0, 0), ErrDamaged},
		"unknown interface":      {enhanced(1, 7, "abcd"), ErrDamaged},
		"no byte order":          {block(blockSection, make([]byte, 16)...), ErrDamaged},
		"odd length":             {[]byte{6, 0, 0, 0, 33, 0, 0, 0, 0, 0, 0, 0}, ErrDamaged},
		"too long":               {[]byte{6, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0}, ErrDamaged},
	} {
		if got, err := blocksOf(t, bytes.NewReader(append(bytes.Clone(start), c.b...))); !errors.Is(err, c.want) || !bytes.Equal(got, start) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := blocksOf(t, bytes.NewReader(pcap(binary.LittleEndian, 0xa1b2c3d4, "abcd"))); err == nil {
		t.Error("pcap has no blocks")
	}
}
