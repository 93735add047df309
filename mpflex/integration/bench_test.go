package integration

import (
	"io"
	"net"
	"testing"
)

// BenchmarkDownload compares a relayed download, limited only by the CPU, with a direct
// one from the origin to the proxy's node.
func BenchmarkDownload(b *testing.B) {
	cases := []struct {
		name, from string
		config     values
	}{
		{"direct", "proxy", nil},
		{"tcp", "phone", values{"transport": "tcp", "device": "wlan0", "proxy": "10.64.3.2:7001"}},
		{"mptcp", "phone", nil},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			if c.from == "phone" {
				start(b, c.config)
			}
			needLab(b)
			serveOrigin(b, web, func(conn *net.TCPConn) {
				defer conn.Close()
				_, _ = io.Copy(conn, neverEnding{})
			})
			conn, err := dialFrom(b, c.from, web)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			const size = 1 << 20
			b.SetBytes(size)
			buffer := make([]byte, 256<<10)
			for b.Loop() {
				if _, err := io.CopyBuffer(io.Discard, &onlyReader{io.LimitedReader{R: conn, N: size}}, buffer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// onlyReader hides all methods but Read, so that io.CopyBuffer uses its buffer.
type onlyReader struct{ limited io.LimitedReader }

func (r *onlyReader) Read(p []byte) (int, error) { return r.limited.Read(p) }
