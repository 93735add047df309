package netx

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

// memory is the reader's memory: two pieces.
type memory struct {
	pieces       [][]byte
	taken, given int
}

func (m *memory) take() [][]byte { m.taken++; return m.pieces }
func (m *memory) giveBack()      { m.given++ }

func TestReader(t *testing.T) {
	a, b := loop(t)
	r, err := NewReader(a)
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{pieces: [][]byte{make([]byte, 3), make([]byte, 3)}}
	_ = a.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := r.Read(m.take, m.giveBack); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if m.taken != 1 || m.given != 1 {
		t.Errorf("who waits holds memory: taken %d times, given back %d times", m.taken, m.given)
	}
	_ = a.SetReadDeadline(time.Time{})
	go func() {
		time.Sleep(10 * time.Millisecond)
		_, _ = b.Write([]byte("abcdefgh"))
	}()
	for _, want := range []string{"abcdef", "gh"} {
		n, err := r.Read(m.take, m.giveBack)
		if got := string(append(m.pieces[0], m.pieces[1]...)[:n]); got != want || err != nil {
			t.Errorf("%q instead of %q, %v", got, want, err)
		}
	}
	if m.taken-m.given != 2 {
		t.Errorf("taken %d times, given back %d times, for two reads", m.taken, m.given)
	}
	_ = b.CloseWrite()
	if n, err := r.Read(m.take, m.giveBack); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

// TestReaderWithoutMemory: a reader that waited and gets no memory when data is
// available reads nothing and does not fail.
func TestReaderWithoutMemory(t *testing.T) {
	a, b := loop(t)
	r, err := NewReader(a)
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan bool)
	taken := 0
	go func() {
		<-waits
		_, _ = b.Write([]byte("x"))
	}()
	n, err := r.Read(func() [][]byte {
		if taken++; taken > 1 {
			return nil
		}
		return [][]byte{make([]byte, 1)}
	}, func() { close(waits) })
	if n != 0 || err != nil || taken != 2 {
		t.Errorf("%d bytes, %v, asked for memory %d times", n, err, taken)
	}
	m := &memory{pieces: [][]byte{make([]byte, 1)}}
	if n, err := r.Read(m.take, m.giveBack); n != 1 || err != nil {
		t.Errorf("with memory: %d bytes, %v", n, err)
	}
}

func TestReaderOfAConnectionThatIsReset(t *testing.T) {
	a, b := loop(t)
	r, err := NewReader(a)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(10 * time.Millisecond)
		Abort(b)
	}()
	m := &memory{pieces: [][]byte{make([]byte, 3)}}
	if _, err := r.Read(m.take, m.giveBack); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
}
