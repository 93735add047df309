package session

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"mplab/mpflex/internal/transport/frame"
)

// peer returns a proxy's session and the other end of its only path.
func peer(t testing.TB, c Config) (*Session, *net.TCPConn) {
	t.Helper()
	s, err := New(Proxy, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	a, b := link(t)
	if _, err := s.Attach(Link{Conn: b, TCP: b, Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return s, a
}

func data(flags frame.Flags, stream, seq uint32, payload string) []byte {
	return append(frame.Header{Type: frame.Data, Flags: flags, Size: uint16(len(payload)), Stream: stream, Seq: seq}.Append(nil), payload...)
}

func ack(stream, seq, limit uint32) []byte {
	return binary.BigEndian.AppendUint32(frame.Header{Type: frame.Ack, Size: 4, Stream: stream, Seq: seq}.Append(nil), limit)
}

// TestBrokenProtocol: a protocol violation ends the session and has no other effect.
func TestBrokenProtocol(t *testing.T) {
	const window = 64 << 10
	for name, b := range map[string][]byte{
		"no frame":                   []byte("GET / HTTP/1.1\r\n"),
		"stream 0":                   data(0, 0, 0, "x"),
		"a stream of the other side": data(0, 2, 0, "x"),
		"numbers far ahead":          data(0, 2*mostAhead+1, 0, "x"),
		"beyond the window":          data(0, 1, window, "x"),
		"behind the end":             append(data(frame.Fin, 1, 0, "x"), data(0, 1, 1, "y")...),
		"two ends":                   append(data(frame.Fin, 1, 0, "x"), data(frame.Fin, 1, 5, "")...),
		"an end before what came":    append(data(0, 1, 4, "x"), data(frame.Fin, 1, 0, "y")...),
		"what was not sent":          append(data(0, 1, 0, "x"), ack(1, 5, 100)...),
	} {
		t.Run(name, func(t *testing.T) {
			s, conn := peer(t, Config{Window: window, InitialWindow: window})
			if _, err := conn.Write(b); err != nil {
				t.Fatal(err)
			}
			select {
			case <-s.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("the session goes on")
			}
			if err := s.Err(); !errors.Is(err, ErrProtocol) {
				t.Error(err)
			}
		})
	}
}

// TestStreamsWithoutEnd: each stream beyond the limit is refused.
func TestStreamsWithoutEnd(t *testing.T) {
	s, conn := peer(t, Config{MaxStreams: 10})
	go func() {
		for id := uint32(1); id < 400; id += 2 {
			_, _ = conn.Write(data(0, id, 0, "x"))
		}
	}()
	refused := map[uint32]bool{}
	for len(refused) < 190 {
		var b [frame.HeaderSize]byte
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			t.Fatal(err)
		}
		h, err := frame.Parse(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(h.Size)); err != nil {
			t.Fatal(err)
		}
		if h.Type == frame.Reset {
			refused[h.Stream] = Reason(h.Seq) == TooMany
		}
	}
	for id, many := range refused {
		if !many || id < 21 {
			t.Errorf("stream %d was refused", id)
		}
	}
	if n := s.Status().Streams; n > 10+190 {
		t.Errorf("%d streams", n)
	}
}

// TestWithoutEnd: if a peer opens streams and answers no reset, or requests answers and
// does not read them, its session ends before it uses much memory. (Or it blocks: the
// kernel of a peer that does not read may drop the segments that acknowledge the peer's
// own bytes.)
func TestWithoutEnd(t *testing.T) {
	ping := frame.Header{Type: frame.Ping, Size: 8}.Append(nil)
	for name, next := range map[string]func(b []byte, i uint32) []byte{
		"streams": func(b []byte, i uint32) []byte { return append(b, data(0, 2*i+1, 0, "x")...) },
		"pings":   func(b []byte, _ uint32) []byte { return append(append(b, ping...), "12345678"...) },
		"resets": func(b []byte, _ uint32) []byte {
			return frame.Header{Type: frame.Reset, Stream: 1, Seq: 1}.Append(b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, conn := peer(t, Config{MaxStreams: 10})
			var written atomic.Int64
			go func() {
				var b []byte
				for i := uint32(0); i < 16<<20; i++ {
					if b = next(b, i); len(b) < 64<<10 {
						continue
					}
					if _, err := conn.Write(b); err != nil {
						return
					}
					written.Add(int64(len(b)))
					b = b[:0]
				}
			}()
			for stuck, before := 0, int64(-1); ; before = written.Load() {
				select {
				case <-s.Done():
				case <-time.After(time.Second):
					if written.Load() == before {
						stuck++
					}
					if stuck < 10 {
						continue
					}
					s.mu.Lock()
					waiting := len(s.paths[0].control)
					s.mu.Unlock()
					if waiting > mostControl {
						t.Errorf("%d bytes of answers wait", waiting)
					}
					return
				}
				break
			}
			if err := s.Err(); !errors.Is(err, ErrProtocol) {
				t.Error(err)
			}
		})
	}
}

// TestOrderOfArrival: in any order, and with any repetition, the bytes are right.
func TestOrderOfArrival(t *testing.T) {
	s, conn := peer(t, Config{})
	for _, b := range [][]byte{
		data(0, 3, 6, "ghi"), data(frame.Again, 3, 6, "ghi"), data(0, 3, 4, "efghij"), data(frame.Fin, 3, 10, "klm"),
		data(0, 3, 3, "d"), data(0, 3, 0, "abc"), data(frame.Again, 3, 0, "abcd"), data(0, 1, 0, "one"), data(frame.Fin, 1, 3, ""),
	} {
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	want := map[uint32]string{1: "one", 3: "abcdefghijklm"}
	for range want {
		st, err := s.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(st); err != nil || string(got) != want[st.ID()] {
			t.Errorf("stream %d: %q, %v", st.ID(), got, err)
		}
	}
	if n := s.Status().Counters.Duplicates; n < 3+4 {
		t.Errorf("%d bytes came twice", n)
	}
}

// FuzzFrames: for any bytes, a session ends or continues, and can be closed.
func FuzzFrames(f *testing.F) {
	f.Add(data(0, 1, 0, "hello"))
	f.Add(append(data(frame.Fin, 1, 2, "x"), data(0, 1, 0, "ab")...))
	f.Add(ack(1, 0, 1<<20))
	f.Add(frame.Header{Type: frame.Reset, Stream: 5, Seq: 1}.Append(nil))
	f.Add(append(frame.Header{Type: frame.Ping, Size: 8}.Append(nil), "12345678"...))
	f.Add(append(frame.Header{Type: frame.PathEnd, Size: 8, Stream: 1}.Append(nil), "12345678"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, conn := peer(t, Config{MaxStreams: 100})
		go func() {
			for {
				st, err := s.Accept(t.Context())
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(st, st) }()
			}
		}()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		_, _ = conn.Write(b)
		_ = conn.CloseWrite()
		s.mu.Lock()
		var path *Path
		if len(s.paths) > 0 {
			path = s.paths[0]
		}
		s.mu.Unlock()
		if path != nil {
			<-path.Done()
		}
		_ = s.Close()
	})
}

// few is a quota of streams.
type few struct{ free atomic.Int64 }

func (q *few) Take() bool {
	if q.free.Load() == 0 {
		return false
	}
	q.free.Add(-1)
	return true
}

func (q *few) Give() { q.free.Add(1) }

// TestStreamsCountFromTheirFirstFrame: streams are counted, and those above the quota
// reset, before they are accepted. A session that ends releases the places of streams
// that were not accepted.
func TestStreamsCountFromTheirFirstFrame(t *testing.T) {
	var quota few
	quota.free.Store(3)
	s, conn := peer(t, Config{Incoming: &quota})
	for id := range uint32(5) {
		if _, err := conn.Write(data(0, 2*id+1, 0, "x")); err != nil {
			t.Fatal(err)
		}
	}
	for refused := 0; refused < 2; {
		var b [frame.HeaderSize]byte
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			t.Fatal(err)
		}
		h, err := frame.Parse(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(h.Size)); err != nil {
			t.Fatal(err)
		}
		if h.Type == frame.Reset {
			refused++
			if h.Stream < 7 || Reason(h.Seq) != TooMany {
				t.Errorf("stream %d is reset: %d", h.Stream, h.Seq)
			}
		}
	}
	if _, err := s.Accept(t.Context()); err != nil { // this test owns the place of this one
		t.Fatal(err)
	}
	_ = s.Close()
	if free := quota.free.Load(); free != 2 {
		t.Errorf("%d of 3 places are free, 1 is with the stream that was accepted", free)
	}
}
