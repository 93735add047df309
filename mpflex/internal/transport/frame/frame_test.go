package frame

import (
	"errors"
	"testing"
)

func TestHeader(t *testing.T) {
	for _, h := range []Header{
		{Type: Data, Flags: Fin | Again, Size: MaxPayload, Stream: 1<<32 - 1, Seq: 7},
		{Type: Ack, Size: 4, Stream: 3, Seq: 1 << 31},
		{Type: Reset, Flags: Answered, Stream: 9, Seq: 2},
		{Type: GoAway},
	} {
		b := h.Append(nil)
		if got, err := Parse((*[HeaderSize]byte)(b)); err != nil || got != h || len(b) != HeaderSize {
			t.Errorf("%+v: %+v, %v", h, got, err)
		}
	}
}

func TestWhatIsNoHeader(t *testing.T) {
	for _, h := range []Header{
		{}, {Type: last + 1}, {Type: 255}, {Type: Ack, Size: 5}, {Type: Ack}, {Type: Ping, Size: 7}, {Type: Reset, Size: 1}, {Type: Datagram}, {Type: PathEnd, Size: 9},
	} {
		b := h.Append(nil)
		if _, err := Parse((*[HeaderSize]byte)(b)); !errors.Is(err, ErrFormat) {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

func TestUnwrap(t *testing.T) {
	for _, c := range []struct {
		near uint64
		seq  uint32
		want uint64
	}{
		{0, 5, 5}, {1 << 32, 5, 1<<32 + 5}, {1<<32 + 5, 1<<32 - 1, 1<<32 - 1}, {1<<32 - 1, 3, 1<<32 + 3},
		{5 << 32, 1<<31 - 1, 5<<32 + 1<<31 - 1},
	} {
		if got := Unwrap(c.near, c.seq); got != c.want {
			t.Errorf("%x near %x: %x", c.seq, c.near, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Header{Type: Data, Size: 4, Stream: 1}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < HeaderSize {
			return
		}
		h, err := Parse((*[HeaderSize]byte)(b))
		if err == nil && string(h.Append(nil)) != string(b[:HeaderSize]) {
			t.Errorf("%x became %x", b[:HeaderSize], h.Append(nil))
		}
	})
}
