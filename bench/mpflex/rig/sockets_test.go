package rig

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// message returns a struct inet_diag_msg with attributes.
func message(attributes ...[]byte) []byte {
	m := make([]byte, diagMessageSize)
	m[0], m[1] = unix.AF_INET, tcpStateEstablished
	binary.BigEndian.PutUint16(m[4:], 40000)
	binary.BigEndian.PutUint16(m[6:], 80)
	copy(m[8:], []byte{10, 64, 1, 2})
	copy(m[24:], []byte{10, 65, 0, 2})
	for _, a := range attributes {
		m = append(m, a...)
		m = append(m, make([]byte, (4-len(a)%4)%4)...)
	}
	return m
}

func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	return append(binary.NativeEndian.AppendUint16(b, kind), value...)
}

func info() []byte {
	b := make([]byte, 232)
	b[infoBackoff] = 3
	binary.NativeEndian.PutUint32(b[infoRTT:], 54_321)
	binary.NativeEndian.PutUint32(b[infoCwnd:], 17)
	binary.NativeEndian.PutUint32(b[infoRetransmitted:], 5)
	return b
}

func TestParseSocket(t *testing.T) {
	got := parseSocket(message(attribute(attributeCong, []byte("cubic\x00")), attribute(attributeInfo, info())))
	want := Socket{
		Local: netip.MustParseAddrPort("10.64.1.2:40000"), Remote: netip.MustParseAddrPort("10.65.0.2:80"),
		Congestion: "cubic", RTTMs: 54.321, Cwnd: 17, Retransmitted: 5, Backoff: 3,
	}
	if got != want {
		t.Errorf("%+v", got)
	}
}

func FuzzParseSocket(f *testing.F) {
	f.Add(message())
	f.Add(message(attribute(attributeCong, []byte("bbr\x00")), attribute(attributeInfo, info())))
	f.Add(message(attribute(attributeInfo, info()[:50])))
	f.Add(append(message(), 3, 0, 4, 0))
	f.Add(append(message(), 200, 0, 4, 0, 'c'))
	f.Fuzz(func(t *testing.T, m []byte) {
		if len(m) < diagMessageSize {
			return
		}
		if s := parseSocket(m); !s.Local.IsValid() || s.RTTMs < 0 {
			t.Errorf("%+v", s)
		}
	})
}
