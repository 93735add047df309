package netx

import (
	"testing"
)

// FuzzControlMessage: any control message is parsed without a panic.
func FuzzControlMessage(f *testing.F) {
	f.Add(make([]byte, 16))
	f.Add([]byte("\x30\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0b\x00\x00\x00\x6f\x00\x00\x00\x02\x03\x03\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x7f\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, control []byte) {
		if errno, ok := parseICMP(control); !ok && errno != 0 {
			t.Errorf("%d of what is none", errno)
		}
	})
}

// FuzzSockaddr: any socket address is parsed without a panic.
func FuzzSockaddr(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x50\x0a\x41\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x0a\x00\x00\x50\x00\x00\x00\x00\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if addr, ok := parseSockaddr(b); ok != addr.IsValid() {
			t.Errorf("%v, %v", addr, ok)
		}
	})
}
