package stream

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// play generates pieces of a text from a script: the start of each, its length,
// whether it was captured, and how many bytes are read next.
func play(t *testing.T, script, text []byte, limit int) {
	t.Helper()
	pool := NewPool(1 << 20)
	a := NewAssembler(pool)
	captured := make([]int, len(text)) // 0: not sent, 1: first captured, 2: first skipped
	arrival := make([]int64, len(text))
	var read []byte
	var at int
	frame := make([]byte, len(text))
	for i := 0; i+3 < len(script); i += 4 {
		lo := int(script[i]) * len(text) / 256
		hi := min(lo+int(script[i+1])/2, len(text))
		now := int64(i + 1)
		mark := 1
		if script[i+2]%8 == 0 {
			mark = 2
			a.Skip(uint64(lo), uint64(hi-lo), now, int32(script[i+2]))
		} else {
			copy(frame, text[lo:hi])
			a.Add(uint64(lo), frame[:hi-lo], now, int32(script[i+2]))
		}
		if !a.Ended() {
			for j := lo; j < hi; j++ {
				if captured[j] == 0 {
					captured[j], arrival[j] = mark, now
				}
			}
		}
		for n := int(script[i+3]); n > 0; {
			part := min(n, max(len(a.Bytes()), int(a.Missing())))
			if part == 0 {
				break
			}
			n -= part
			if a.Missing() > 0 {
				part = min(part, int(a.Missing()))
				for j := at; j < at+part; j++ {
					if captured[j] != 2 {
						t.Fatalf("byte %d is missing, and was captured", j)
					}
				}
			} else {
				read = append(read[:0], a.Bytes()[:part]...)
				if !bytes.Equal(read, text[at:at+part]) {
					t.Fatalf("bytes %d to %d are wrong", at, at+part)
				}
			}
			a.Read(uint64(part), func(r Run) {
				for range r.Bytes {
					if r.TimeNS != arrival[at] || r.Missing != (captured[at] == 2) {
						t.Fatalf("byte %d: %+v, it came at %d, %d", at, r, arrival[at], captured[at])
					}
					at++
				}
			})
		}
		kept := a.Settle(limit)
		for j := range frame {
			frame[j] = '!'
		}
		if !kept && !a.Ended() {
			t.Fatal("over the limit, and goes on")
		}
		if a.Ended() {
			if pool.Used() != 0 {
				t.Fatalf("%d bytes are taken after the end", pool.Used())
			}
			return
		}
		next := at
		for next < len(text) && captured[next] != 0 {
			next++
		}
		if have := int(a.next); have != next {
			t.Fatalf("in order up to %d, want %d", have, next)
		}
	}
	a.End()
	if pool.Used() != 0 {
		t.Fatalf("%d bytes are taken after the end", pool.Used())
	}
}

func text(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

func TestPiecesInAnyOrderBecomeTheText(t *testing.T) {
	all := text(3000)
	for seed := range uint64(300) {
		script := make([]byte, 4*400)
		r := rand.New(rand.NewPCG(seed, 0))
		for i := range script {
			script[i] = byte(r.Uint32())
		}
		play(t, script, all, 1<<20)
		play(t, script, all, 1<<11)
	}
}

func FuzzAssembler(f *testing.F) {
	f.Add([]byte{0, 100, 1, 0, 128, 100, 8, 0, 4, 100, 1, 255}, uint16(1000))
	all := text(1000)
	f.Fuzz(func(t *testing.T, script []byte, limit uint16) { play(t, script, all, int(limit)) })
}

func TestOverlapsTakeTheFirstArrival(t *testing.T) {
	a := NewAssembler(NewPool(1 << 20))
	a.Add(2, []byte("cd"), 1, 0)
	a.Add(0, []byte("ABCDE"), 2, 1)
	if string(a.Bytes()) != "ABcdE" {
		t.Fatalf("%q", a.Bytes())
	}
	var tally Tally
	a.Discard(5, &tally)
	if tally.FirstNS != 2 || tally.LastNS != 2 || tally.Bytes != 5 || len(tally.Shares) != 2 || tally.Shares[0] != (Share{1, 3}) || tally.Shares[1] != (Share{0, 2}) {
		t.Errorf("%+v", tally)
	}
}

func TestBytesThatWereNotCapturedAreCounted(t *testing.T) {
	a := NewAssembler(NewPool(1 << 20))
	a.Add(0, []byte("ab"), 1, 0)
	a.Skip(2, 1<<40, 2, 0)
	a.Add(2+1<<40, []byte("yz"), 3, 0)
	if string(a.Bytes()) != "ab" || !a.Cut() || a.Missing() != 0 {
		t.Fatalf("%q, %d", a.Bytes(), a.Missing())
	}
	a.Discard(2, nil)
	if len(a.Bytes()) != 0 || a.Missing() != 1<<40 {
		t.Fatalf("%q, %d", a.Bytes(), a.Missing())
	}
	a.Discard(1<<40, nil)
	if string(a.Bytes()) != "yz" || a.Cut() {
		t.Fatalf("%q", a.Bytes())
	}
}

func TestATableTranslatesWhatCameAndWhatComes(t *testing.T) {
	var table [256]byte
	for i := range table {
		table[i] = byte(i) ^ 0x20
	}
	a := NewAssembler(NewPool(1 << 20))
	first := []byte("abc")
	a.Add(0, first, 1, 0)
	a.Add(5, []byte("fg"), 1, 0)
	a.Translate(&table)
	a.Add(3, []byte("de"), 1, 0)
	if string(a.Bytes()) != "ABCDEFG" || string(first) != "abc" {
		t.Errorf("%q of %q", a.Bytes(), first)
	}
}

func TestMergeKeepsFirstAndLatest(t *testing.T) {
	var a, b Tally
	a.Merge(&b)
	b.Add(Run{TimeNS: 9, Bytes: 2, Subflow: 1})
	b.Add(Run{TimeNS: 5, Bytes: 1, Subflow: 0})
	a.Merge(&b)
	b = Tally{}
	b.Add(Run{TimeNS: 7, Bytes: 4, Subflow: 0})
	a.Merge(&b)
	if a.FirstNS != 9 || a.LastNS != 9 || a.Bytes != 7 || len(a.Shares) != 2 || a.Shares[1] != (Share{0, 5}) {
		t.Errorf("%+v", a)
	}
}

func BenchmarkInOrder(b *testing.B) {
	a := NewAssembler(NewPool(1 << 20))
	segment := make([]byte, 1400)
	b.SetBytes(1400)
	b.ReportAllocs()
	var tally Tally
	for i := range b.N {
		a.Add(uint64(i)*1400, segment, int64(i), int32(i&1))
		a.Discard(1400, &tally)
		a.Settle(1 << 20)
	}
}
