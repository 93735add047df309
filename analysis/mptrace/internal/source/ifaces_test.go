package source

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// cooked2 returns a segment with a Linux cooked mode 2 header.
func cooked2(index uint32, segment uint32) []byte {
	b := binary.BigEndian.AppendUint32([]byte{8, 0, 0, 0}, index)
	b = append(b, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0)
	return append(b, bulkFrame(1, segment, false)[14:]...)
}

// cooked2Block describes an interface of Linux cooked mode 2.
func cooked2Block(name string) []byte {
	b := interfaceBlock(0, name)
	binary.LittleEndian.PutUint16(b[8:], 276)
	return b
}

func pcapOf(link uint32, frames ...[]byte) []byte {
	le := binary.LittleEndian
	b := append(le.AppendUint32(nil, 0xa1b2c3d4), make([]byte, 16)...)
	b = le.AppendUint32(b, link)
	for i, f := range frames {
		for _, v := range []int{i, 0, len(f), 1514} {
			b = le.AppendUint32(b, uint32(v))
		}
		b = append(b, f...)
	}
	return b
}

// named returns the interface name of each packet.
func named(s *Source) (names []string) {
	for packets := range blocks(s) {
		for i := range packets {
			names = append(names, s.Interface(packets[i].Iface))
		}
	}
	return names
}

func TestInterfaceNames(t *testing.T) {
	indexes := [][]byte{cooked2(3, 1), cooked2(12, 2), cooked2(3, 3), cooked2(19, 4), cooked2(12, 5)}
	pcapng := func(described []byte, frames ...[]byte) []byte {
		b := append(sectionBlock(), described...)
		for i, f := range frames {
			b = enhanced(b, 0, int64(i), f, 1514)
		}
		return b
	}
	for _, c := range []struct {
		name string
		file string
		b    []byte
		want []string
		row  []string
	}{
		{"pcap", "phone-wlan0.pcap", pcapOf(1, bulkFrame(1, 1, false)), []string{"wlan0"}, []string{"wlan0"}},
		{"pcap without a name", "phone.pcap", pcapOf(1, bulkFrame(1, 1, false)), []string{""}, []string{""}},
		{"pcapng", "phone-eth9.pcapng", pcapng(interfaceBlock(1, "wlan0"), bulkFrame(1, 1, false)), []string{"wlan0"}, []string{"wlan0"}},
		{"cooked 2", "phone-any.pcap", pcapOf(276, indexes...), []string{"if3", "rmnet0", "if3", "if19", "rmnet0"}, []string{"if3", "rmnet0", "if19"}},
		{"cooked 2 in pcapng", "phone.pcapng", pcapng(cooked2Block("any"), indexes[:2]...), []string{"if3", "rmnet0"}, []string{"if3", "rmnet0"}},
		{"cooked 2 in pcapng without a name", "phone.pcapng", pcapng(cooked2Block(""), indexes[:1]...), []string{"if3"}, []string{"if3"}},
		{"cooked 2 on one interface", "phone.pcapng", pcapng(cooked2Block("wlan0"), indexes[:2]...), []string{"wlan0", "wlan0"}, []string{"wlan0"}},
		{"cooked 2 without segments", "phone.pcap", pcapOf(276), nil, []string{}},
	} {
		s := Open([]string{writeFile(t, c.file, c.b)}, Options{IfNames: map[uint32]string{12: "rmnet0"}})
		if got, row := named(s), s.Files()[0]; !slices.Equal(got, c.want) || !slices.Equal(row.Interfaces, c.row) {
			t.Errorf("%s: %v, want %v; row %v, want %v", c.name, got, c.want, row.Interfaces, c.row)
		}
	}
}

// TestInterfaceNumbers: numbers are unique over all files.
func TestInterfaceNumbers(t *testing.T) {
	s := Open([]string{
		bulk(t, "a.pcapng", "wlan0", 1, 3, 0),
		writeFile(t, "b-any.pcap", pcapOf(276, cooked2(3, 1), cooked2(4, 2))),
	}, Options{})
	seen := map[string]bool{}
	for packets := range blocks(s) {
		for i := range packets {
			seen[fmt.Sprintf("%d %s", packets[i].Iface, s.Interfaces()[packets[i].Iface])] = true
		}
	}
	if len(seen) != 3 || len(s.Interfaces()) != 3 || s.Interface(3) != "" || s.Interface(-1) != "" {
		t.Errorf("%v of %v", seen, s.Interfaces())
	}
}

// TestManyIndexes: a capture with ever new interface indexes uses bounded
// memory, and its packets are kept.
func TestManyIndexes(t *testing.T) {
	frames := make([][]byte, maxNames+1000)
	for i := range frames {
		frames[i] = cooked2(uint32(i), uint32(i))
	}
	s := Open([]string{writeFile(t, "x.pcap", pcapOf(276, frames...))}, Options{})
	names := named(s)
	if len(names) != len(frames) || names[maxNames-1] != fmt.Sprintf("if%d", maxNames-1) || names[maxNames] != "" || names[len(names)-1] != "" {
		t.Errorf("%d packets", len(names))
	}
	if n := len(s.Interfaces()); n != maxNames+1 {
		t.Errorf("%d names", n)
	}
}
