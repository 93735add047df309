package session

import (
	"io"
	"strings"
	"testing"
)

// BenchmarkStream sends one stream from TCP to TCP through a session on loopback, as
// agent and proxy do.
func BenchmarkStream(b *testing.B) {
	for name, paths := range map[string]int{"1": 1, "2": 2, "2 with TLS": 2} {
		b.Run(name, func(b *testing.B) {
			k := newPair(b, Config{}, 0)
			k.private = strings.HasSuffix(name, "TLS")
			for i := range paths {
				k.attach(uint8(i))
			}
			const size = 64 << 20
			b.SetBytes(size)
			for b.Loop() {
				in, source := link(b)
				out, sink := link(b)
				go func() {
					_, _ = io.Copy(source, io.LimitReader(zeros{}, size))
					_ = source.Close()
				}()
				st, other := k.stream("x")
				go func() {
					_, _ = io.ReadFull(other, make([]byte, 1))
					_, _ = other.WriteTo(out)
					_ = out.Close()
					_ = other.Close()
				}()
				go func() {
					_, _ = st.ReadFrom(in)
					_ = st.CloseWrite()
				}()
				if n, err := io.Copy(io.Discard, sink); n != size || err != nil {
					b.Fatal(n, err)
				}
				_, _ = io.Copy(io.Discard, st)
				_ = st.Close()
				_, _, _ = in.Close(), sink.Close(), source
			}
		})
	}
}

// zeros is a source of bytes without cost.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
