package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func testAttach() Attach {
	a := Attach{
		Time:        time.UnixMilli(1_700_000_000_123),
		Path:        2,
		Incarnation: 7,
		Interface:   "wlan0",
		Fresh:       true,
		Settings:    Settings{MaxStreams: 1024, InitialWindow: 4 << 20, KeepAlive: 15 * time.Second, Schemes: []byte("\x01rr")},
	}
	copy(a.Nonce[:], "0123456789abcdef")
	copy(a.Session[:], "session of agent")
	return a
}

func testBinding() (binding Binding) {
	for i := range binding {
		binding[i] = byte(i)
	}
	return binding
}

func mustAttach(t *testing.T, a Attach) []byte {
	t.Helper()
	b, err := a.Append(nil, testSecret, testBinding())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The MACs were computed with another implementation of HMAC-SHA256.
const (
	goldenAttach = "4d504658" + "01" + "03" + "006d" + "0000018bcfe5687b" + "30313233343536373839616263646566" +
		"73657373696f6e206f66206167656e74" + "02" + "01" + "00000007" + "05" + "776c616e30" +
		"00000400" + "00400000" + "00003a98" + "0003" + "017272" +
		"8ac19f3e26e6887e69adc6d80af16eb5fe2b482d070da3144f5c3e3915616291"
	goldenAttached = "4d504658" + "01" + "00" + "003e" + "626f726e206e6f77" + "00000200" + "00100000" + "00000000" + "0000" +
		"be12436a0b580e360ab69a1ba546e4dc6e74783b07a8c0dc0489c7cc5c939164"
	goldenUnknownSession = "4d504658" + "01" + "06" + "0028" + "8c6e24772bb37e23717590c99e3a02f85632475d03406855faabfc611e3595f6"
)

func TestGoldenAttach(t *testing.T) {
	got := mustAttach(t, testAttach())
	if hex.EncodeToString(got) != goldenAttach {
		t.Errorf("got  %x\nwant %s", got, goldenAttach)
	}
	reader := bytes.NewReader(append(got, "frames"...))
	back, which, err := ReadAttach(reader, testBinding(), []byte("the secret of another"), testSecret)
	if err != nil || which != 1 || !reflect.DeepEqual(back, testAttach()) {
		t.Errorf("%+v, %d, %v", back, which, err)
	}
	if rest, _ := io.ReadAll(reader); string(rest) != "frames" {
		t.Errorf("the frames were read: %q is left", rest)
	}
}

func TestGoldenAttached(t *testing.T) {
	nonce := testAttach().Nonce
	other := nonce
	other[15]++
	for _, c := range []struct {
		answer  Attached
		binding Binding
		want    string
	}{
		{Attached{OK, [BirthSize]byte([]byte("born now")), Settings{MaxStreams: 512, InitialWindow: 1 << 20}}, testBinding(), goldenAttached},
		{Attached{Status: UnknownSession}, Unbound, goldenUnknownSession},
	} {
		got, err := c.answer.Append(nil, testSecret, c.binding, nonce)
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("%v\ngot  %x\nwant %s", err, got, c.want)
		}
		back, err := ReadAttached(bytes.NewReader(got), testSecret, c.binding, nonce)
		if err != nil || !reflect.DeepEqual(back, c.answer) {
			t.Errorf("%+v, %v", back, err)
		}
		if _, err := ReadAttached(bytes.NewReader(got), testSecret, c.binding, other); !errors.Is(err, ErrMAC) {
			t.Errorf("the answer to another attach: %v", err)
		}
		if _, err := ReadAttached(bytes.NewReader(got), testSecret, Binding{1}, nonce); !errors.Is(err, ErrMAC) {
			t.Errorf("the answer on another connection: %v", err)
		}
		for n := range got {
			if _, err := ReadAttached(bytes.NewReader(got[:n]), testSecret, c.binding, nonce); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d bytes of the answer: %v", n, err)
			}
		}
		for i := range len(got) * 8 {
			bad := bytes.Clone(got)
			bad[i/8] ^= 1 << (i % 8)
			if _, err := ReadAttached(bytes.NewReader(bad), testSecret, c.binding, nonce); err == nil {
				t.Errorf("bit %d changed, and accepted", i)
			}
		}
	}
}

func TestEveryChangedBitOfAnAttachIsSeen(t *testing.T) {
	good := mustAttach(t, testAttach())
	for i := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[i/8] ^= 1 << (i % 8)
		if _, _, err := ReadAttach(bytes.NewReader(bad), testBinding(), testSecret); err == nil {
			t.Errorf("bit %d changed, and accepted", i)
		}
	}
	for n := range good {
		if _, _, err := ReadAttach(bytes.NewReader(good[:n]), testBinding(), testSecret); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes of the attach: %v", n, err)
		}
	}
}

// TestAttachElsewhere checks that an attach is valid only for its connection and its
// sender.
func TestAttachElsewhere(t *testing.T) {
	good := mustAttach(t, testAttach())
	for name, binding := range map[string]Binding{"another TLS connection": {1}, "a connection without TLS": Unbound} {
		if _, _, err := ReadAttach(bytes.NewReader(good), binding, testSecret); !errors.Is(err, ErrMAC) {
			t.Errorf("on %s: %v", name, err)
		}
	}
	if _, _, err := ReadAttach(bytes.NewReader(good), testBinding(), []byte("another client's"), nil); !errors.Is(err, ErrMAC) {
		t.Errorf("with other secrets: %v", err)
	}
	if _, _, err := ReadAttach(bytes.NewReader(good), testBinding()); !errors.Is(err, ErrMAC) {
		t.Errorf("with no secret at all: %v", err)
	}
	if _, _, err := ReadHello(bytes.NewReader(good), testSecret); err == nil {
		t.Error("taken for a hello")
	}
	if _, _, err := ReadAttach(bytes.NewReader(testHello().Append(nil, testSecret)), Unbound, testSecret); err == nil {
		t.Error("a hello was taken for an attach")
	}
}

func TestAttachOnce(t *testing.T) {
	var first, second Attach
	first.Stamp()
	second.Stamp()
	replay := NewReplay(8)
	for i, c := range []struct {
		attach Attach
		want   error
	}{{first, nil}, {second, nil}, {first, ErrReplay}, {second, ErrReplay}, {testAttach(), ErrSkew}} {
		if err := replay.Once(c.attach.Time, c.attach.Nonce, time.Now()); !errors.Is(err, c.want) {
			t.Errorf("%d: %v, want %v", i, err, c.want)
		}
	}
}

// TestAttachBounds checks that values out of bounds are not sent and, even from an
// authentic peer, not accepted.
func TestAttachBounds(t *testing.T) {
	const interfaceAt = attachFixed - 1
	settingsAt := attachFixed + len(testAttach().Interface)
	for name, c := range map[string]struct {
		change func(*Attach)
		raw    func(b []byte) []byte
		ok     bool
	}{
		"as it is":         {func(*Attach) {}, func(b []byte) []byte { return b }, true},
		"long interface":   {func(a *Attach) { a.Interface = strings.Repeat("i", 15) }, nil, true},
		"longer interface": {func(a *Attach) { a.Interface = strings.Repeat("i", 16) }, nil, false},
		"no interface":     {func(a *Attach) { a.Interface = "" }, nil, true},
		"line in the interface": {func(a *Attach) { a.Interface = "wlan\n" },
			func(b []byte) []byte { b[interfaceAt+5] = '\n'; return b }, false},
		"interface over the end": {nil, func(b []byte) []byte { b[interfaceAt] = 255; return b }, false},
		"interface shorter":      {nil, func(b []byte) []byte { b[interfaceAt]--; return b }, false},
		"unknown flag":           {nil, func(b []byte) []byte { b[49] |= 4; return b }, false},
		"backup":                 {func(a *Attach) { a.Backup = true }, nil, true},
		"another command":        {nil, func(b []byte) []byte { b[5] = byte(Echo); return b }, false},
		"no streams": {func(a *Attach) { a.Settings.MaxStreams = 0 },
			func(b []byte) []byte { binary.BigEndian.PutUint32(b[settingsAt:], 0); return b }, false},
		"most streams": {func(a *Attach) { a.Settings.MaxStreams = MaxStreams }, nil, true},
		"more streams": {func(a *Attach) { a.Settings.MaxStreams = MaxStreams + 1 },
			func(b []byte) []byte { binary.BigEndian.PutUint32(b[settingsAt:], MaxStreams+1); return b }, false},
		"smallest window": {func(a *Attach) { a.Settings.InitialWindow = MinWindow }, nil, true},
		"smaller window": {func(a *Attach) { a.Settings.InitialWindow = MinWindow - 1 },
			func(b []byte) []byte { binary.BigEndian.PutUint32(b[settingsAt+4:], MinWindow-1); return b }, false},
		"larger window": {func(a *Attach) { a.Settings.InitialWindow = MaxWindow + 1 },
			func(b []byte) []byte { binary.BigEndian.PutUint32(b[settingsAt+4:], MaxWindow+1); return b }, false},
		"no keep-alive": {func(a *Attach) { a.Settings.KeepAlive = 0 }, nil, true},
		"short keep-alive": {func(a *Attach) { a.Settings.KeepAlive = MinKeepAlive - time.Millisecond },
			func(b []byte) []byte { binary.BigEndian.PutUint32(b[settingsAt+8:], 99); return b }, false},
		"long keep-alive": {func(a *Attach) { a.Settings.KeepAlive = MaxKeepAlive + time.Millisecond },
			func(b []byte) []byte { binary.BigEndian.PutUint32(b[settingsAt+8:], ^uint32(0)); return b }, false},
		"negative keep-alive":  {func(a *Attach) { a.Settings.KeepAlive = -time.Second }, nil, false},
		"many schemes":         {func(a *Attach) { a.Settings.Schemes = make([]byte, MaxSchemes) }, nil, true},
		"more schemes":         {func(a *Attach) { a.Settings.Schemes = make([]byte, MaxSchemes+1) }, nil, false},
		"schemes over the end": {nil, func(b []byte) []byte { b[settingsAt+13]++; return b }, false},
		"something after them": {nil, func(b []byte) []byte { b[settingsAt+13]--; return b }, false},
		"something at the end": {nil, func(b []byte) []byte { return append(b, 0) }, false},
		"cut in the settings":  {nil, func(b []byte) []byte { return b[:len(b)-1] }, false},
		"cut before them":      {nil, func(b []byte) []byte { return b[:settingsAt] }, false},
		"cut in the session":   {nil, func(b []byte) []byte { return b[:40] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change != nil {
				attach := testAttach()
				c.change(&attach)
				message, err := attach.Append(nil, testSecret, testBinding())
				if (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrFormat)) {
					t.Fatalf("sent: %v", err)
				}
				if c.ok {
					back, _, err := ReadAttach(bytes.NewReader(message), testBinding(), testSecret)
					if err != nil || !reflect.DeepEqual(back, attach) {
						t.Errorf("%+v, %v", back, err)
					}
				}
			}
			if c.raw != nil {
				binding := testBinding()
				signed := mustAttach(t, testAttach())
				signed = c.raw(signed[:len(signed)-macSize])
				binary.BigEndian.PutUint16(signed[6:], uint16(len(signed)+macSize))
				message := append(signed, mac(testSecret, attachLabel, binding[:], signed)...)
				_, _, err := ReadAttach(bytes.NewReader(message), testBinding(), testSecret)
				if (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrCommand)) {
					t.Errorf("received: %v", err)
				}
			}
		})
	}
	for name, signed := range map[string][]byte{
		"settings with a refusal": append([]byte("MPFX\x01\x07\x00\x3e"), make([]byte, BirthSize+settingsSize)...),
		"ok without settings":     []byte("MPFX\x01\x00\x00\x28"),
		"ok and half a birth":     []byte("MPFX\x01\x00\x00\x2cborn"),
	} {
		message := append(bytes.Clone(signed), mac(testSecret, attachedLabel, Unbound[:], make([]byte, NonceSize), signed)...)
		if _, err := ReadAttached(bytes.NewReader(message), testSecret, Unbound, [NonceSize]byte{}); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Attached{Status: OK}).Append(nil, testSecret, Unbound, [NonceSize]byte{}); !errors.Is(err, ErrFormat) {
		t.Errorf("an answer without settings: %v", err)
	}
}

// FuzzAttach: any message of an authentic peer is read without a crash. An accepted one
// is the same after decoding and encoding.
func FuzzAttach(f *testing.F) {
	good, err := testAttach().Append(nil, testSecret, Unbound)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[:len(good)-macSize])
	f.Add(good[:attachFixed])
	f.Fuzz(func(t *testing.T, signed []byte) {
		message := append(bytes.Clone(signed), mac(testSecret, attachLabel, Unbound[:], signed)...)
		attach, _, err := ReadAttach(bytes.NewReader(message), Unbound, testSecret)
		if err != nil {
			return
		}
		if again, err := attach.Append(nil, testSecret, Unbound); err != nil || !bytes.Equal(again, message) {
			t.Errorf("%v\n%x\n%x", err, message, again)
		}
	})
}

// FuzzAttached is the same for the answers of an authentic proxy.
func FuzzAttached(f *testing.F) {
	var nonce [NonceSize]byte
	for _, answer := range []Attached{{Status: Draining}, {OK, [BirthSize]byte{1}, testAttach().Settings}} {
		good, err := answer.Append(nil, testSecret, Unbound, nonce)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(good[:len(good)-macSize])
	}
	f.Fuzz(func(t *testing.T, signed []byte) {
		message := append(bytes.Clone(signed), mac(testSecret, attachedLabel, Unbound[:], nonce[:], signed)...)
		answer, err := ReadAttached(bytes.NewReader(message), testSecret, Unbound, nonce)
		if err != nil {
			return
		}
		if again, err := answer.Append(nil, testSecret, Unbound, nonce); err != nil || !bytes.Equal(again, message) {
			t.Errorf("%v\n%x\n%x", err, message, again)
		}
	})
}
