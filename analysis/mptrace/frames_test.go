package mptrace

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"mplab/analysis/mptrace/tables"
)

// TestWarningsCountOnce: a SYN with options that the capture cut off, and one
// with a malformed MPTCP option.
func TestWarningsCountOnce(t *testing.T) {
	syn := func(port byte, options ...byte) []byte {
		header := byte(20 + len(options))
		ip := []byte{0x45, 0, 0, 20 + header, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
		tcp := []byte{9, port, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, header / 4 << 4, 2, 255, 255, 0, 0, 0, 0}
		return append(append(ip, tcp...), options...)
	}
	cut, bad := syn(1, 2, 4, 5, 180, 30, 12, 0, 1), syn(2, 30, 5, 0, 1, 0, 1, 1, 1)
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, make([]byte, 12)...)
	b = binary.LittleEndian.AppendUint32(b, 65535)
	b = binary.LittleEndian.AppendUint32(b, 101) // raw IP
	for i, frame := range [][]byte{cut[:len(cut)-2], bad} {
		for _, v := range []int{1_700_000_000 + i, 0, len(frame), 48} {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
		b = append(b, frame...)
	}
	name := filepath.Join(t.TempDir(), "syns.pcap")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r := keep(t, tables.All, name)
	if want := (tables.Warnings{OptionsCut: 1, OptionsMalformed: 1}); r.Warnings != want || len(r.Connections) != 2 {
		t.Errorf("%+v, %d connections", r.Warnings, len(r.Connections))
	}
}
