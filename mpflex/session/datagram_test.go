package session

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"mplab/mpflex/sched"
)

// arrivals sends datagrams up and returns how often each of them came, once all
// that was sent of them has.
func (k *pair) arrivals(t *testing.T, n int, scheme *Scheme) []int {
	t.Helper()
	came := make(chan Datagram, 10*n)
	k.proxy.OnDatagram(func(d Datagram) {
		d.Payload = append([]byte(nil), d.Payload...)
		came <- d
	})
	for i := range n {
		d := Datagram{Association: 5, Label: 200, Payload: binary.BigEndian.AppendUint32([]byte("number"), uint32(i))}
		for !k.agent.SendDatagram(d, scheme) {
			time.Sleep(time.Millisecond)
		}
	}
	for left := 1000; left > 0 && !k.quiet(int64(n)); left-- {
		time.Sleep(10 * time.Millisecond)
	}
	counts := make([]int, n)
	for len(came) > 0 {
		d := <-came
		if d.Association != 5 || d.Label != 200 || len(d.Payload) != 10 {
			t.Fatalf("%+v", d)
		}
		counts[binary.BigEndian.Uint32(d.Payload[6:])]++
	}
	return counts
}

// quiet says whether the agent has sent so many datagrams, and the proxy has all
// of them and of their copies.
func (k *pair) quiet(n int64) bool {
	k.agent.mu.Lock()
	waiting := k.agent.hasDatagrams()
	for _, p := range k.agent.paths {
		waiting = waiting || len(p.copies) > 0
	}
	sent := k.agent.totals.DatagramsOut + k.agent.totals.DatagramCopies
	k.agent.mu.Unlock()
	var got int64
	for _, p := range k.proxy.Status().Paths {
		got += p.DatagramsIn
	}
	return !waiting && sent >= n && got == sent
}

func scheme(t *testing.T, scheduler string, paths ...string) *Scheme {
	t.Helper()
	s, err := sched.New(scheduler)
	if err != nil {
		t.Fatal(err)
	}
	made := &Scheme{Scheduler: s}
	if len(paths) > 0 {
		made.Paths = func(name string) (allowed, backup bool) {
			for i, p := range paths {
				if p == name {
					return true, i > 0
				}
			}
			return false, false
		}
	}
	return made
}

// TestDatagramsBySchemes: each datagram comes once, over the paths of its scheme.
func TestDatagramsBySchemes(t *testing.T) {
	const n = 500
	for name, c := range map[string]struct {
		scheme      *Scheme
		least, most [2]int64 // datagrams on each path
	}{
		"the session's own": {nil, [2]int64{0, 0}, [2]int64{n, n}},
		"round robin":       {scheme(t, "roundrobin"), [2]int64{n / 4, n / 4}, [2]int64{3 * n / 4, 3 * n / 4}},
		"single":            {scheme(t, "single"), [2]int64{n, 0}, [2]int64{n, 0}},
		"the other path":    {scheme(t, "single", "path1"), [2]int64{0, n}, [2]int64{0, n}},
		"with a backup":     {scheme(t, "backup", "path1", "path0"), [2]int64{0, n}, [2]int64{0, n}},
		"redundant":         {scheme(t, "redundant"), [2]int64{n / 2, n / 2}, [2]int64{n, n}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newPair(t, Config{}, 2)
			for i, times := range k.arrivals(t, n, c.scheme) {
				if times != 1 {
					t.Errorf("datagram %d came %d times", i, times)
				}
			}
			there, here := k.proxy.Status(), k.agent.Status()
			for i, p := range there.Paths {
				if p.DatagramsIn < c.least[i] || p.DatagramsIn > c.most[i] {
					t.Errorf("path %d brought %d datagrams, not %d to %d", i, p.DatagramsIn, c.least[i], c.most[i])
				}
			}
			out, in := here.Counters, there.Counters
			if out.DatagramsOut != n || in.DatagramsIn != n || (out.DatagramCopies > 0) != (name == "redundant") || in.DatagramDuplicates > out.DatagramCopies {
				t.Errorf("out %+v\nin %+v", out, in)
			}
		})
	}
}

// TestDatagramsWithoutAPath: what no path may carry is refused, and dropped when
// the last one has gone.
func TestDatagramsWithoutAPath(t *testing.T) {
	k := newPair(t, Config{}, 1)
	nowhere, d := scheme(t, "single", "path1"), Datagram{Association: 1, Payload: []byte("x")}
	if k.agent.SendDatagram(d, nowhere) {
		t.Error("it was taken")
	}
	second := k.attach(1)
	k.agent.mu.Lock()
	blocked := second.blocked
	second.blocked = true // as if its TCP had no room
	k.agent.mu.Unlock()
	if !k.agent.SendDatagram(d, nowhere) {
		t.Fatal("it was not taken")
	}
	second.Abandon(errGivenUp)
	<-second.Done()
	k.agent.mu.Lock()
	defer k.agent.mu.Unlock()
	second.blocked = blocked
	if k.agent.hasDatagrams() {
		t.Error("it waits")
	}
}

// TestNumbers: a number is new once, in whatever order they come, and those that
// are too far behind are not.
func TestNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var n numbers
	seen, highest := map[int64]bool{}, int64(-1)
	for at := int64(0); at < 5<<24; at += random.Int64N(numbersKept / 50) { // the low bits begin again, several times
		if random.IntN(100) == 0 {
			at += numbersKept * random.Int64N(20)
		}
		number := max(0, at-random.Int64N(numbersKept*11/10))
		old := number <= highest-numbersKept
		if got, want := n.add(uint32(number)&(1<<24-1)), !old && !seen[number]; got != want {
			t.Fatalf("%d: new %v, want %v; the highest is %d", number, got, want, highest)
		}
		seen[number] = true
		highest = max(highest, number)
	}
}
