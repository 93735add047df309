package origin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"mplab/internal/netx"
)

// serve starts an origin on a free port of the loopback interface.
func serve(t *testing.T) string {
	t.Helper()
	// The kernel chooses the port; the origin can use it immediately, because it listens with SO_REUSEADDR.
	free, err := netx.Options{}.Listen(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	address := netx.AddrPort(free.Addr())
	_ = free.Close()

	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- Serve(ctx, []Listener{{Address: address}}, func() { close(ready) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	return address.String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

var sizes = []uint64{0, 1, 1000, bufferSize, bufferSize + 1, blockSize - 1, blockSize, 3*blockSize + 17}

func TestGetAndPut(t *testing.T) {
	address := serve(t)
	for _, size := range sizes {
		for _, seed := range []uint64{0, 7, blockSize - 1, 1<<63 + 5} {
			firsts := 0
			if err := Get(dial(t, address), size, seed, func() { firsts++ }); err != nil {
				t.Errorf("get %d, seed %d: %v", size, seed, err)
			}
			if want := min(size, 1); firsts != int(want) {
				t.Errorf("get %d: the first byte came %d times", size, firsts)
			}
			if err := Put(dial(t, address), size, seed); err != nil {
				t.Errorf("put %d, seed %d: %v", size, seed, err)
			}
		}
	}
}

// meddler changes one byte of the data that passes through it to the reader.
type meddler struct {
	io.Writer
	io.Reader
	at int
}

func (m *meddler) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	if m.at >= 0 && m.at < n {
		b[m.at] ^= 1
	}
	m.at -= n
	return n, err
}

func TestWrongByteIsFound(t *testing.T) {
	address := serve(t)
	const size = blockSize + 1000
	for _, at := range []int{0, 12345, size - 1} {
		conn := dial(t, address)
		if err := Get(&meddler{conn, conn, at}, size, 3, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d changed: %v", at, err)
		}
	}
}

// TestShiftedStreamIsFound checks that correct bytes at the wrong place are an error.
func TestShiftedStreamIsFound(t *testing.T) {
	for _, cut := range []int{1, 1448, 4096, bufferSize, 1 << 20} {
		data := stream(9, 4<<20)
		moved := append(bytes.Clone(data[:5000]), data[5000+cut:]...)
		if right, err := receive(bytes.NewReader(moved), uint64(len(moved)), 9, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes left out: %v after %d bytes", cut, err, right)
		}
	}
}

func TestWrongUploadIsAnswered(t *testing.T) {
	conn := dial(t, serve(t))
	data := stream(4, 10_000)
	data[9_999] ^= 1
	_, _ = conn.Write(append(message{opPut, 10_000, 4}.encode(), data...))
	if got, err := readMessage(conn); err != nil || got.operation != answerBad {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEarlyEndIsFound(t *testing.T) {
	if _, err := receive(bytes.NewReader(stream(1, 99)), 100, 1, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}

func TestUnknownOperationIsReset(t *testing.T) {
	conn := dial(t, serve(t))
	_, _ = conn.Write(message{'X', 1, 1}.encode())
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}
