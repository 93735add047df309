package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"
)

var testSecret = []byte("sixteen byte key")

func testHello() Hello {
	h := Hello{
		Command:     Connect,
		Time:        time.UnixMilli(1_700_000_000_123),
		Source:      netip.MustParseAddrPort("10.64.1.2:40000"),
		Destination: netip.MustParseAddrPort("[fd00::1]:443"),
	}
	copy(h.Nonce[:], "0123456789abcdef")
	return h
}

// The MACs were computed with another implementation of HMAC-SHA256.
const (
	goldenHello = "4d504658" + "01" + "01" + "005a" + "0000018bcfe5687b" + "30313233343536373839616263646566" +
		"04" + "9c40" + "0a400102" + "06" + "01bb" + "fd000000000000000000000000000001" +
		"a53ad639ec8b7192a21be264cc39a86ee877844b2a7575392be05dd662633a61"
	goldenStatus = "4d504658" + "01" + "05" + "0028" + "30b66a3c3d38899c60d342dd002c00fe9c1a55706d79c128612cdfec5e456a08"
)

func TestGoldenHello(t *testing.T) {
	got := testHello().Append(nil, testSecret)
	if hex.EncodeToString(got) != goldenHello {
		t.Errorf("got  %x\nwant %s", got, goldenHello)
	}
	reader := bytes.NewReader(append(got, "application"...))
	back, _, err := ReadHello(reader, testSecret)
	if err != nil || back != testHello() {
		t.Errorf("%+v, %v", back, err)
	}
	if rest, _ := io.ReadAll(reader); string(rest) != "application" {
		t.Errorf("the application's bytes were read: %q is left", rest)
	}
}

func TestGoldenStatus(t *testing.T) {
	nonce := testHello().Nonce
	got := Denied.Append(nil, testSecret, nonce)
	if hex.EncodeToString(got) != goldenStatus {
		t.Errorf("got  %x\nwant %s", got, goldenStatus)
	}
	if back, err := ReadStatus(bytes.NewReader(got), testSecret, nonce); err != nil || back != Denied {
		t.Errorf("%v, %v", back, err)
	}
	nonce[0]++
	if _, err := ReadStatus(bytes.NewReader(got), testSecret, nonce); !errors.Is(err, ErrMAC) {
		t.Errorf("the answer to another hello: %v", err)
	}
}

func TestEveryChangedBitIsSeen(t *testing.T) {
	good := testHello().Append(nil, testSecret)
	for i := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[i/8] ^= 1 << (i % 8)
		if _, _, err := ReadHello(bytes.NewReader(bad), testSecret); err == nil {
			t.Errorf("bit %d changed, and accepted", i)
		}
	}
	for n := range good {
		if _, _, err := ReadHello(bytes.NewReader(good[:n]), testSecret); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes of the hello: %v", n, err)
		}
	}
}

func TestUnknownCommandIsAuthenticated(t *testing.T) {
	h := testHello()
	h.Command = 9
	got, _, err := ReadHello(bytes.NewReader(h.Append(nil, testSecret)), testSecret)
	if !errors.Is(err, ErrCommand) || got.Nonce != h.Nonce {
		t.Errorf("%+v, %v", got, err)
	}
	h = testHello()
	h.Destination = netip.AddrPort{}
	if _, _, err := ReadHello(bytes.NewReader(h.Append(nil, testSecret)), testSecret); !errors.Is(err, ErrFormat) {
		t.Errorf("connect to nowhere: %v", err)
	}
}

func TestReplay(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	hello := func(id byte, offset time.Duration) Hello {
		h := Hello{Command: Echo, Time: now.Add(offset)}
		h.Nonce[0] = id
		return h
	}
	r := NewReplay(3)
	steps := []struct {
		name  string
		hello Hello
		at    time.Duration
		want  error
	}{
		{"first", hello(1, 0), 0, nil},
		{"again", hello(1, 0), time.Second, ErrReplay},
		{"another", hello(2, 0), time.Second, nil},
		{"just early enough", hello(3, MaxSkew), 0, nil},
		{"too early", hello(4, MaxSkew+time.Millisecond), 0, ErrSkew},
		{"too late", hello(4, -MaxSkew-time.Millisecond), 0, ErrSkew},
		{"memory full", hello(5, 0), time.Second, ErrReplayFull},
		{"the last moment of a hello dated ahead", hello(3, MaxSkew), 2 * MaxSkew, ErrReplay},
		{"room again", hello(6, 2*MaxSkew), 2*MaxSkew + 2*time.Second, nil},
	}
	for _, s := range steps {
		if err := r.Accept(s.hello, now.Add(s.at)); !errors.Is(err, s.want) {
			t.Errorf("%s: %v, want %v", s.name, err, s.want)
		}
	}
	if len(r.seen) != 1 || len(r.queue)-r.head != 1 {
		t.Errorf("%d nonces, queue of %d from %d", len(r.seen), len(r.queue), r.head)
	}
}

// FuzzHello: any message of an authentic peer is read without a crash. An accepted one
// is the same after decoding and encoding.
func FuzzHello(f *testing.F) {
	good := testHello().Append(nil, testSecret)
	f.Add(good[:len(good)-macSize])
	f.Add([]byte("MPFX\x01\x02\x00\x3a"))
	f.Fuzz(func(t *testing.T, signed []byte) {
		message := append(bytes.Clone(signed), mac(testSecret, helloLabel, signed)...)
		hello, _, err := ReadHello(bytes.NewReader(message), testSecret)
		if err != nil {
			return
		}
		if again := hello.Append(nil, testSecret); !bytes.Equal(again, message) {
			t.Errorf("%x\n%x", message, again)
		}
	})
}

// FuzzStatus: any answer of an authentic proxy is read without a crash, and is the same
// after decoding and encoding.
func FuzzStatus(f *testing.F) {
	good := OK.Append(nil, testSecret, testHello().Nonce)
	f.Add(good[:len(good)-macSize])
	f.Add([]byte("MPFX\x01\x02\x00\x28 and more"))
	f.Fuzz(func(t *testing.T, signed []byte) {
		nonce := testHello().Nonce
		message := append(bytes.Clone(signed), mac(testSecret, statusLabel, nonce[:], signed)...)
		status, err := ReadStatus(bytes.NewReader(message), testSecret, nonce)
		if err != nil {
			return
		}
		if again := status.Append(nil, testSecret, nonce); !bytes.Equal(again, message) || status.String() == "" {
			t.Errorf("%x\n%x", message, again)
		}
	})
}
