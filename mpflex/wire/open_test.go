package wire

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	four, six := netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("[2001:db8::1]:443")
	for _, o := range []Open{
		{Command: Connect, Label: 7, Source: four, Destination: six},
		{Command: Connect, Destination: four},
		{Command: Echo, Source: six},
		{Command: Schemes},
	} {
		r := strings.NewReader(string(o.Append(nil)) + "rest")
		got, err := ReadOpen(r)
		if rest, _ := io.ReadAll(r); err != nil || got != o || string(rest) != "rest" {
			t.Errorf("%+v: %+v, %v, %q", o, got, err, rest)
		}
	}
}

func TestBadOpen(t *testing.T) {
	good := Open{Command: Connect, Destination: netip.MustParseAddrPort("10.0.0.1:80")}.Append(nil)
	change := func(at int, b byte) []byte {
		c := bytes.Clone(good)
		c[at] = b
		return c
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":            {nil, io.EOF},
		"cut":                {good[:len(good)-1], io.ErrUnexpectedEOF},
		"too long":           {change(0, 1), ErrFormat},
		"too short":          {change(1, 5), ErrFormat},
		"another command":    {change(2, 9), ErrCommand},
		"another family":     {change(4, 5), ErrFormat},
		"no destination":     {Open{Command: Connect}.Append(nil), ErrFormat},
		"bytes behind it":    {append(change(1, byte(len(good)+1)), 0), ErrFormat},
		"an address cut off": {change(1, byte(len(good)-1)), ErrFormat},
	} {
		if _, err := ReadOpen(bytes.NewReader(c.b)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReadOpen(f *testing.F) {
	f.Add(Open{Command: Connect, Destination: netip.MustParseAddrPort("10.0.0.1:80")}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ReadOpen(bytes.NewReader(b))
		if err == nil && !bytes.HasPrefix(b, o.Append(nil)) {
			t.Errorf("%x became %x", b, o.Append(nil))
		}
	})
}
