package names

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

// message returns an answer with one address: header, question, answer.
func message(name byte, address uint32) []byte {
	b := []byte{0, 1, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0, 1, name, 0, 0, 1, 0, 1, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4}
	return binary.BigEndian.AppendUint32(b, address)
}

func addr(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

func TestTheNewestAddressesAreKept(t *testing.T) {
	d := NewDNS(10)
	for i := range uint32(100) {
		if !d.Answer(message('a', i), int64(i)) {
			t.Fatal("not understood")
		}
		if len(d.addresses) > 10 || len(d.order) > 10 {
			t.Fatalf("%d addresses", len(d.addresses))
		}
	}
	if d.Name(addr(89), 1000) != "" || d.Name(addr(90), 1000) != "a" || d.Name(addr(99), 1000) != "a" {
		t.Error("not the newest")
	}
}

func TestTheNewestNamesAreKept(t *testing.T) {
	d := NewDNS(10)
	for i := range 26 {
		d.Answer(message('A'+byte(i), 7), int64(i))
		d.Answer(message('A'+byte(i), 7), int64(i))
	}
	if got := len(d.addresses[addr(7)]); got != namesPerAddress {
		t.Fatalf("%d names", got)
	}
	for at, want := range map[int64]string{1000: "z", 25: "z", 24: "y", 22: "w", 21: ""} {
		if got := d.Name(addr(7), at); got != want {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
}

func TestWhatIsNoAnswerChangesNothing(t *testing.T) {
	query, refused := message('a', 1), message('a', 1)
	query[2], refused[3] = 0x01, 0x85
	for name, b := range map[string][]byte{"a query": query, "refused": refused, "empty": nil, "cut": message('a', 1)[:30]} {
		d := NewDNS(10)
		if d.Answer(b, 1); len(d.addresses) != 0 {
			t.Errorf("%s: %v", name, d.addresses)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(message('a', 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := NewDNS(2)
		if d.Answer(b, 1); len(d.addresses) > 2 {
			t.Fatalf("%d addresses", len(d.addresses))
		}
	})
}
