package integration

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"mplab/mpflex/internal/forward/socks"
)

// job is one connection of an application. Its first bytes describe it to the origin.
// The seed determines its bytes, and each side checks the bytes it receives.
type job struct {
	Seed       uint64
	Up, Down   int64 // bytes
	Kind       jobKind
	SlowOrigin bool // reads few bytes at a time
	SlowClient bool
	PauseUS    uint32 // between written chunks, in µs
}

type jobKind uint8

const (
	bothWays    jobKind = iota // both directions at once
	askThenHear                // the origin answers after the end of the request
	clientReset                // during the download
	originReset
	jobKinds
)

const jobSize = 8 + 8 + 8 + 1 + 1 + 1 + 4

func (j job) encode() []byte {
	b, err := binary.Append(nil, binary.BigEndian, j)
	if err != nil || len(b) != jobSize {
		panic(fmt.Sprint(len(b), err))
	}
	return b
}

func readJob(r io.Reader) (j job, err error) {
	return j, binary.Read(io.LimitReader(r, jobSize), binary.BigEndian, &j)
}

// drawJob returns a random job. Most are short, as in real traffic.
func drawJob(random *rand.Rand) job {
	size := func(bits int) int64 { return random.Int64N(1 << random.IntN(bits)) }
	j := job{Seed: random.Uint64(), Up: size(15), Down: size(18)}
	switch random.IntN(10) {
	case 0:
		j.Down = 1<<18 + size(23)
	case 1:
		j.Up = 1<<18 + size(22)
	case 2:
		j.Up, j.Down = size(21), size(21)
		j.Kind = askThenHear
	case 3:
		j.Down += 100_000
		j.Kind = clientReset + jobKind(random.IntN(2))
	}
	if random.IntN(6) == 0 {
		j.Up, j.Down = min(j.Up, 1<<19), min(j.Down, 1<<19)
		j.SlowOrigin, j.SlowClient = random.IntN(2) == 0, random.IntN(2) == 0
	}
	if random.IntN(6) == 0 {
		j.Up, j.Down = min(j.Up, 1<<20), min(j.Down, 1<<20)
		j.PauseUS = uint32(random.IntN(3000))
	}
	return j
}

// content returns the bytes of one direction.
func (j job) content(down bool) io.Reader {
	seed, size := j.Seed, j.Up
	if down {
		seed, size = j.Seed+1, j.Down
	}
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	return io.LimitReader(rand.NewChaCha8(key), size)
}

// stream is a connection that carries a job.
type stream interface {
	io.ReadWriteCloser
	CloseWrite() error
	SetLinger(seconds int) error
}

// send writes the first bytes of one direction, limited to most, and ends it.
func (j job) send(conn io.Writer, down bool, most int64) error {
	r, chunk := io.LimitReader(j.content(down), most), make([]byte, 16<<10)
	for {
		n, err := io.ReadFull(r, chunk)
		if _, failed := conn.Write(chunk[:n]); failed != nil {
			return failed
		}
		if err != nil {
			return nil
		}
		time.Sleep(time.Duration(j.PauseUS) * time.Microsecond)
	}
}

// errBytes reports wrong bytes.
var errBytes = errors.New("the bytes are wrong")

// hear reads and compares the bytes of one direction. It returns the number of right
// bytes.
func (j job) hear(conn io.Reader, down, slow bool, most int64) (int64, error) {
	want, total := j.content(down), int64(0)
	got, expected := make([]byte, 16<<10), make([]byte, 16<<10)
	for total < most {
		if slow {
			time.Sleep(5 * time.Millisecond)
		}
		n, err := conn.Read(got[:min(most-total, int64(len(got)))])
		k, _ := io.ReadFull(want, expected[:n])
		if k < n || !bytes.Equal(got[:n], expected[:n]) {
			return total, fmt.Errorf("%w, within %d of %d", errBytes, n, total)
		}
		total += int64(n)
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// whole calls hear up to the end.
func (j job) whole(conn io.Reader, down, slow bool) error {
	size := j.Up
	if down {
		size = j.Down
	}
	if n, err := j.hear(conn, down, slow, 1<<62); err != nil || n != size {
		return fmt.Errorf("%d of %d bytes: %w", n, size, err)
	}
	return nil
}

func reset(conn stream) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// answer runs the origin's side of a job.
func answer(conn stream) error {
	defer conn.Close()
	j, err := readJob(conn)
	if err != nil {
		return nil // reset before the job was received
	}
	var sending sync.WaitGroup
	var sent error
	send := func() { sent = j.send(conn, true, 1<<62) }
	switch j.Kind {
	case originReset:
		_ = j.send(conn, true, j.Down/2)
		reset(conn)
		return nil
	case clientReset:
		_ = j.send(conn, true, j.Down)
		_, err = j.hear(conn, false, false, 1<<62)
		if errors.Is(err, errBytes) {
			return err
		}
		return nil
	case bothWays:
		sending.Go(send)
	}
	heard := j.whole(conn, false, j.SlowOrigin)
	if j.Kind == askThenHear {
		send()
	}
	sending.Wait()
	_ = conn.CloseWrite()
	return errors.Join(heard, sent)
}

// do runs the application's side of a job.
func (j job) do(conn stream) error {
	defer conn.Close()
	if _, err := conn.Write(j.encode()); err != nil {
		return err
	}
	switch j.Kind {
	case clientReset:
		n, err := j.hear(conn, true, j.SlowClient, j.Down/2)
		reset(conn)
		if err != nil || n != j.Down/2 {
			return fmt.Errorf("%d of %d bytes before the reset: %w", n, j.Down/2, err)
		}
		return nil
	case originReset:
		n, err := j.hear(conn, true, false, 1<<62)
		if err == nil || errors.Is(err, errBytes) || n > j.Down/2 {
			return fmt.Errorf("%d bytes, and a reset was to come: %w", n, err)
		}
		return nil
	}
	var sending sync.WaitGroup
	var sent error
	sending.Go(func() {
		if sent = j.send(conn, false, 1<<62); sent == nil {
			sent = conn.CloseWrite()
		}
	})
	heard := j.whole(conn, true, j.SlowClient)
	sending.Wait()
	return errors.Join(heard, sent)
}

// datagrams exchanges numbered datagrams with an echo until stop is closed. It returns
// how many were answered, each once and completely.
func datagrams(t *testing.T, seed uint64, to string, stop <-chan struct{}) (sent, answered int) {
	t.Helper()
	var tunnel *socks.Tunnel
	var err error
	inNode(t, "phone", func() { tunnel, err = socks.OpenTunnel(t.Context(), netip.MustParseAddrPort(socksServer), nil) })
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	var mu sync.Mutex
	came := map[uint64]bool{}
	var receiving sync.WaitGroup
	receiving.Go(func() {
		buffer := make([]byte, 65535)
		for {
			b, _, err := tunnel.Receive(buffer)
			if err != nil {
				return
			}
			number := binary.BigEndian.Uint64(b)
			mu.Lock()
			if came[number] || !bytes.Equal(b, datagram(seed, number)) {
				t.Errorf("datagram %d came wrong, or twice (%v)", number, came[number])
			}
			came[number] = true
			mu.Unlock()
		}
	})
	for number := uint64(0); ; number++ {
		select {
		case <-stop:
			time.Sleep(time.Second)
			tunnel.Close()
			receiving.Wait()
			return int(number), len(came)
		case <-time.After(20 * time.Millisecond):
			_ = tunnel.Send(datagram(seed, number), socks.FromAddrPort(netip.MustParseAddrPort(to)))
		}
	}
}

func datagram(seed, number uint64) []byte {
	random := rand.New(rand.NewPCG(seed, number))
	b := binary.BigEndian.AppendUint64(nil, number)
	for range random.IntN(150) {
		b = binary.BigEndian.AppendUint64(b, random.Uint64())
	}
	return b
}
