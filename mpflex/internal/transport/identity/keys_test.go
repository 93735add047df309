package identity

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
	"time"
)

func testSecret() []byte {
	secret := make([]byte, MinSecret)
	for i := range secret {
		secret[i] = byte(i)
	}
	return secret
}

// The keys and the server name were computed with another implementation of HKDF,
// Ed25519 and HMAC.
const (
	goldenAgentKey  = "f4274116292c7aec3fdd0dd76cb06dc36ad8174a2fee30fe6517c23ebe1f0eac"
	goldenProxyKey  = "71f817ccb17a146c76d162d7bcbbb5c44548e1ce562966ea631b897a1456d88a"
	goldenNamingKey = "b16a936864ab59b432342a3c148fc14b1ca4cefb8e0d2e123e3dae5dbe051960"
	goldenName      = "agf47zlipmydcmrtgq2tmnzyhfqwey3emvtgfwkx5quuglsitwxbggfchyquk"
)

func TestGoldenKeys(t *testing.T) {
	keys, err := derive(testSecret())
	if err != nil {
		t.Fatal(err)
	}
	for want, got := range map[string][]byte{
		goldenAgentKey: public(keys.agent), goldenProxyKey: public(keys.proxy), goldenNamingKey: keys.naming,
	} {
		if hex.EncodeToString(got) != want {
			t.Errorf("got  %x\nwant %s", got, want)
		}
	}
	if err := checkSecret(testSecret()[1:]); !errors.Is(err, ErrSecret) {
		t.Errorf("a secret of %d bytes: %v", MinSecret-1, err)
	}
}

func TestCertificateIsTheSameEachTime(t *testing.T) {
	keys, err := derive(testSecret())
	if err != nil {
		t.Fatal(err)
	}
	first, err := certify(keys.agent)
	if err != nil {
		t.Fatal(err)
	}
	second, err := certify(keys.agent)
	if err != nil || !bytes.Equal(first.Certificate[0], second.Certificate[0]) {
		t.Errorf("%v\n%x\n%x", err, first.Certificate[0], second.Certificate[0])
	}
}

func TestGoldenName(t *testing.T) {
	keys, err := derive(testSecret())
	if err != nil {
		t.Fatal(err)
	}
	name, ok := parseName(goldenName)
	if !ok || !name.by(keys.naming) || name.at.UnixMilli() != 1_700_000_000_123 || string(name.nonce[:]) != "0123456789abcdef" {
		t.Errorf("%+v", name)
	}
}

func TestNames(t *testing.T) {
	keys, err := derive(testSecret())
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_007)
	first, second := sealName(keys.naming, now), sealName(keys.naming, now)
	if first == second {
		t.Errorf("twice the same name: %s", first)
	}
	name, ok := parseName(first)
	if !ok || !name.by(keys.naming) || !name.at.Equal(now) {
		t.Errorf("%+v", name)
	}
	// Any other character in any position makes the name invalid.
	for i := range first {
		for _, c := range []byte("abcdefghijklmnopqrstuvwxyz234567A1.") {
			changed := []byte(first)
			if changed[i] == c {
				continue
			}
			changed[i] = c
			if name, ok := parseName(string(changed)); ok && name.by(keys.naming) {
				t.Errorf("%s passes for %s", changed, first)
			}
		}
	}
	for _, bad := range []string{"", first[1:], first + "a", "www.example.org"} {
		if _, ok := parseName(bad); ok {
			t.Errorf("%q is a name", bad)
		}
	}
}
