package anonymise

import (
	"bytes"
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// key is the key of the tests: 0, 1, 2, …
func key() []byte {
	k := make([]byte, KeySize)
	for i := range k {
		k[i] = byte(i)
	}
	return k
}

func parse(t testing.TB, text string) []byte {
	t.Helper()
	b, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mapped returns the replacement of an address.
func mapped(t testing.TB, text string) string {
	t.Helper()
	b := parse(t, text)
	New(key()).Replace(b)
	return Format(b)
}

// shared returns the number of leading bits that two addresses share.
func shared(one, other []byte) int {
	for i, b := range one {
		if b != other[i] {
			return i*8 + bits.LeadingZeros8(b^other[i])
		}
	}
	return len(one) * 8
}

// randomBytes returns a generator of random bytes that is the same in each run.
func randomBytes() func(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	return func(size int) []byte {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
}

// TestSample compares with the sample of the authors of Crypto-PAn: its key, and
// the output of their program.
func TestSample(t *testing.T) {
	sample, err := hex.DecodeString("1522178d33a4cf80130a5b1649907d10d8988f837979652762574c2d2a842202")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"128.11.68.132":   "135.242.180.132",
		"129.118.74.4":    "134.136.186.123",
		"130.132.252.244": "133.68.164.234",
		"141.223.7.43":    "141.167.8.160",
		"141.233.145.108": "141.129.237.235",
	} {
		b := parse(t, address)
		if newCryptoPAn(sample, nil).replace(b, 0); Format(b) != want {
			t.Errorf("%s became %s, want %s", address, Format(b), want)
		}
	}
}

// TestSharedPrefix: replacements share as many bits as the addresses, and are in
// a kept network if the address is.
func TestSharedPrefix(t *testing.T) {
	pan, random := newCryptoPAn(key()[:32], stay4), randomBytes()
	for range 20000 {
		one := random(4)
		other := bytes.Clone(one)
		bit := int(random(1)[0]) % 32
		other[bit/8] ^= 0x80 >> (bit % 8)
		if random(1)[0]&1 == 0 {
			copy(other[2:], random(2))
		}
		oldShared, wasKept := shared(one, other), inAny(one, stay4)
		pan.replace(one, 0)
		pan.replace(other, 0)
		if got := shared(one, other); got != oldShared || inAny(one, stay4) != wasKept {
			t.Fatalf("% x, % x share %d bits, before %d", one, other, got, oldShared)
		}
	}
}

// staysByCryptoPAn reports whether the original Crypto-PAn keeps all bits of an
// address behind the first ones.
func staysByCryptoPAn(key, address []byte, first int) bool {
	c := newCryptoPAn(key, nil)
	for bit := first; bit < len(address)*8; bit++ {
		input, output := c.pad, make([]byte, len(c.pad))
		for i := range bit {
			mask := byte(0x80) >> (i % 8)
			input[i/8] = input[i/8]&^mask | address[i/8]&mask
		}
		if c.block.Encrypt(output, input[:]); output[0]&0x80 != 0 {
			return false
		}
	}
	return true
}

// TestNoneStays: with keys by which Crypto-PAn keeps an address, it gets
// another replacement, which differs in the first half of the bits that can
// change. Other addresses still share as many bits with it.
func TestNoneStays(t *testing.T) {
	random := randomBytes()
	for _, c := range []struct {
		address string
		first   int // bits that always stay
		kept    int // most bits that the replacement shares
	}{
		{"10.1.0.2", 10, 21},
		{"192.168.0.1", 3, 17},
		{"ff02::1:ff01:1", 104, 116},
	} {
		address := parse(t, c.address)
		key := random(KeySize)
		pan := key[:32]
		if len(address) == 16 {
			pan = key[32:64]
		}
		tries := 0
		for ; !staysByCryptoPAn(pan, address, c.first) && tries < 1<<20; tries++ {
			copy(key, random(KeySize))
		}
		replaced := bytes.Clone(address)
		a := New(key)
		if a.Replace(replaced); shared(address, replaced) != c.kept {
			t.Errorf("%s became %s: they share %d bits, want %d (key %d)", c.address, Format(replaced), shared(address, replaced), c.kept, tries)
		}
		for bit := c.first; bit < len(address)*8; bit++ {
			other := bytes.Clone(address)
			other[bit/8] ^= 0x80 >> (bit % 8)
			if a.Replace(other); shared(other, replaced) != bit {
				t.Errorf("%s: the replacement of an address with %d same bits shares %d", c.address, bit, shared(other, replaced))
			}
		}
	}
}

func TestSharedPrefixIPv6(t *testing.T) {
	a, random := New(key()), randomBytes()
	for range 2000 {
		one := append([]byte{0x20, 0x02}, random(14)...)
		other := bytes.Clone(one)
		bit := 16 + int(random(1)[0])%112
		other[bit/8] ^= 0x80 >> (bit % 8)
		a.Replace(one)
		a.Replace(other)
		if got := shared(one, other); got != bit {
			t.Fatalf("% x, % x share %d bits, before %d", one, other, got, bit)
		}
	}
}

func TestReplacementsAreDistinct(t *testing.T) {
	a, random := New(key()), randomBytes()
	old, replaced := map[string]bool{}, map[string]bool{}
	for range 20000 {
		b := random(4)
		old[string(b)] = true
		a.Replace(b)
		replaced[string(b)] = true
	}
	if len(old) != len(replaced) {
		t.Errorf("%d addresses became %d", len(old), len(replaced))
	}
}

func TestUnchanged(t *testing.T) {
	for _, address := range strings.Fields(`10.64.1.2 10.67.0.1 127.0.0.1 0.0.0.0 224.0.0.251 255.255.255.255 192.0.2.1
		198.51.100.7 203.0.113.9 :: ::1 2001:db8::5 3fff::1 ff02::fb ::ffff:10.64.1.2
		ff:ff:ff:ff:ff:ff 33:33:00:00:00:fb 01:80:c2:00:00:0e 00:00:00:00:00:00`) {
		if got := mapped(t, address); got != address {
			t.Errorf("%s became %s", address, got)
		}
	}
}

// TestNearUnchanged: no other address becomes one that stays.
func TestNearUnchanged(t *testing.T) {
	a := New(key())
	for _, near := range strings.Fields("10.63.255.255 10.68.0.1 126.1.2.3 192.0.3.1 198.51.101.7 2001:db7::1 2001:db9::1") {
		b := parse(t, near)
		if a.Replace(b); inAny(b, slices.Concat(stay4, documentation4)) && len(b) == 4 || len(b) == 16 && inAny(b, documentation6) {
			t.Errorf("%s became %s", near, Format(b))
		}
	}
}

func TestIPv4InIPv6(t *testing.T) {
	four := mapped(t, "185.60.216.35")
	if got := mapped(t, "::ffff:185.60.216.35"); got != "::ffff:"+four || four == "185.60.216.35" {
		t.Errorf("%s and %s", four, got)
	}
	if got, want := mapped(t, "64:ff9b::185.60.216.35"), netip.MustParseAddr("64:ff9b::"+four).String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestInterfaceIdentifiers: link-local addresses, their multicast groups and the
// MAC addresses of these reveal no MAC address.
func TestInterfaceIdentifiers(t *testing.T) {
	if got := mapped(t, "fe80::a8bb:ccff:fedd:eeff"); !strings.HasPrefix(got, "fe80::") || strings.HasSuffix(got, "fedd:eeff") {
		t.Error(got)
	}
	group := parse(t, mapped(t, "ff02::1:ffdd:eeff"))
	if !bytes.HasPrefix(group, solicited) || Format(group) == "ff02::1:ffdd:eeff" {
		t.Errorf("% x", group)
	}
	if got := parse(t, mapped(t, "33:33:ff:dd:ee:ff")); !bytes.Equal(got[3:], group[13:]) || !bytes.HasPrefix(got, solicitedMAC) {
		t.Errorf("% x, group % x", got, group)
	}
	if got := mapped(t, "ff3e:30:2a02:a03f::1"); !strings.HasPrefix(got, "ff3e:30:") || strings.Contains(got, "2a02:a03f") {
		t.Errorf("a group with a network prefix became %s", got)
	}
}

func TestMACKind(t *testing.T) {
	a, random := New(key()), randomBytes()
	for range 2000 {
		old := random(macSize)
		replaced := bytes.Clone(old)
		if a.Replace(replaced); replaced[0]&3 != old[0]&3 || old[0]&1 == 0 && bytes.Equal(old, replaced) {
			t.Fatalf("% x became % x", old, replaced)
		}
	}
}

func TestAnotherKey(t *testing.T) {
	b := parse(t, "185.60.216.35")
	New(make([]byte, KeySize)).Replace(b)
	if one, again := mapped(t, "185.60.216.35"), mapped(t, "185.60.216.35"); Format(b) == one || one != again {
		t.Error("the key does not determine the replacement")
	}
}

// TestManyAddresses: the memory for replacements is bounded, and replacements
// that were forgotten are the same again.
func TestManyAddresses(t *testing.T) {
	a := New(key())
	reported := 0
	a.Replaced = func(old, replacement []byte) { reported++ }
	first := parse(t, "185.60.216.35")
	a.Replace(first)
	b := make([]byte, 4)
	for i := range mostCached + 10 {
		copy(b, []byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
		a.Replace(b)
	}
	again := parse(t, "185.60.216.35")
	a.Replace(again)
	if len(a.cache) > mostCached || !bytes.Equal(first, again) || reported != mostCached+12 {
		t.Errorf("%d replacements kept, % x and % x, %d reported", len(a.cache), first, again, reported)
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{"", "1.2.3", "fe80::1%wlan0", "ac:37:43:1b:2c", "00:11:22:33:44:55:66:77:88", "1.2.3.4 "} {
		if b, err := Parse(text); err == nil {
			t.Errorf("%q is % x", text, b)
		}
	}
	for _, text := range []string{"1.2.3.4", "::ffff:1.2.3.4", "2001:db8::1", "ac:37:43:1b:2c:3d", "ab:cd::1:23:45:67"} {
		if got := Format(parse(t, text)); got != text {
			t.Errorf("%s, want %s", got, text)
		}
	}
}
