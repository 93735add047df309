package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"
)

// The MACs were computed with another implementation of HMAC-SHA256.
const (
	goldenSkewed     = "4d504658" + "01" + "0a" + "0030" + "0000018bcfe5687b" + "d10e967d654c2638ab04eb08ce89f438e08f2319776f95e763b4535a501782c1"
	goldenSkewedPath = "4d504658" + "01" + "0a" + "0030" + "0000018bcfe5687b" + "a3d778cfc05f60663dfa5010a7164ba37407f2544178795a1f5af1070bd4d753"
)

func TestGoldenSkewed(t *testing.T) {
	nonce, now := testHello().Nonce, time.UnixMilli(1_700_000_000_123)
	hello := AppendSkewed(nil, testSecret, nonce, now)
	path := AppendSkewedPath(nil, testSecret, testBinding(), nonce, now)
	if hex.EncodeToString(hello) != goldenSkewed || hex.EncodeToString(path) != goldenSkewedPath {
		t.Errorf("got  %x\nand  %x", hello, path)
	}
	read := map[string]func([]byte) error{
		string(hello): func(b []byte) error {
			_, err := ReadStatus(bytes.NewReader(b), testSecret, nonce)
			return err
		},
		string(path): func(b []byte) error {
			_, err := ReadAttached(bytes.NewReader(b), testSecret, testBinding(), nonce)
			return err
		},
	}
	for message, read := range read {
		var skew *SkewError
		if err := read([]byte(message)); !errors.As(err, &skew) || !skew.Proxy.Equal(now) || skew.Ahead < time.Hour {
			t.Errorf("%v", err)
		}
		for i := range len(message) * 8 {
			bad := []byte(message)
			bad[i/8] ^= 1 << (i % 8)
			if err := read(bad); err == nil || errors.As(err, &skew) {
				t.Errorf("bit %d changed: %v", i, err)
			}
		}
		for n := range message {
			if err := read([]byte(message)[:n]); err == nil || errors.As(err, &skew) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
	}
}

// TestClock: an agent's clock jumps and returns.
func TestClock(t *testing.T) {
	for off, want := range map[time.Duration]string{
		time.Hour: "1h0m0s ahead of that of the proxy", -26 * time.Hour: "26h0m0s behind that of the proxy", 0: "agree again",
	} {
		var c Clock
		c.Learn(&SkewError{Ahead: -7 * time.Hour}) // the previous correction
		proxy := time.Now().Add(-off)
		nonce := testHello().Nonce
		_, err := ReadStatus(bytes.NewReader(AppendSkewed(nil, testSecret, nonce, proxy)), testSecret, nonce)
		var skew *SkewError
		if !errors.As(err, &skew) || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %s", err, want)
		}
		c.Learn(skew)
		if err := NewReplay(1).Once(c.Now(), nonce, proxy); err != nil {
			t.Errorf("off by %v: %v", off, err)
		}
		if off == 0 {
			continue
		}
		err = NewReplay(1).Once(time.Now(), nonce, proxy)
		if !errors.Is(err, ErrSkew) || !strings.Contains(err.Error(), strings.Join(strings.Fields(want)[:2], " ")) {
			t.Errorf("off by %v: %v", off, err)
		}
	}
}

func TestMemory(t *testing.T) {
	m := NewMemory(3)
	nonce := func(id byte) (n [NonceSize]byte) { n[0] = id; return n }
	for i, step := range []struct {
		id   byte
		want error
	}{{1, nil}, {2, nil}, {3, nil}, {1, ErrReplay}, {2, ErrReplay}, {3, ErrReplay}, {4, nil}, {2, ErrReplay}, {4, ErrReplay}, {1, nil}, {3, ErrReplay}, {2, nil}} {
		if err := m.Once(nonce(step.id)); !errors.Is(err, step.want) {
			t.Errorf("step %d: %v", i, err)
		}
	}
	if len(m.seen) != 3 || len(m.ring) != 3 {
		t.Errorf("%d and %d are kept", len(m.seen), len(m.ring))
	}
}
