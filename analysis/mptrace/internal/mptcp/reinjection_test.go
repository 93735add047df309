package mptcp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// reinjections returns the rows in short form.
func reinjections(r *tables.Result) []string {
	var list []string
	for _, i := range r.Reinjections {
		acked := ""
		if i.Acked {
			acked = " acked"
		}
		list = append(list, fmt.Sprintf("%d+%d %d→%d %s%s", i.Offset, i.Bytes, i.FromSubflow, i.ToSubflow, i.Cause, acked))
	}
	return list
}

func TestReinjectedRanges(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	k.joinLTE()
	k.down(wifi, 0, 1000, 0)
	k.down(lte, 0, 1000, 1000)
	k.down(wifi, 1000, 500, 2000)
	k.down(lte, 1000, 1500, 500)  // 500 of WiFi's, 1000 new
	k.down(lte, 2500, 900, 2000)  // 500 of WiFi's, 400 new
	k.down(wifi, 1500, 1000, 900) // 100 of its own, 900 of LTE's
	k.ack(wifi, 2500, 2400)
	k.down(wifi, 2500, 200, 2200) // acknowledged before: LTE carried all of it, WiFi the first part
	k.down(lte, 3400, 100, 0)     // acknowledged before
	r := k.end()
	want := []string{"500+500 0→1 unknown", "2000+500 0→1 unknown", "1000+900 1→0 unknown", "0+100 0→1 unknown acked"}
	slices.Sort(want)
	got := reinjections(r)
	slices.Sort(got)
	// 2200–2400 belongs to WiFi: it carried 2000–2500 first.
	if !slices.Equal(got, want) || r.Connections[0].ReinjectedDn != 2000 || r.Connections[0].BytesDown != 2900 {
		t.Errorf("%q %+v", got, r.Connections[0])
	}
	for _, i := range r.Reinjections {
		if i.Offset == 2000 && i.SinceOriginalMS != 2 {
			t.Errorf("%+v", i)
		}
	}
}

// TestCauses plays each cause of a reinjection.
func TestCauses(t *testing.T) {
	begin := func(k *script) {
		k.openMPTCP()
		k.joinLTE()
		k.down(wifi, 0, 1000, 0)
		k.ack(wifi, 1000, 1000)
		k.down(wifi, 1000, 1000, 1000)
	}
	copyOnLTE := func(k *script) { k.down(lte, 0, 1000, 1000) }
	for _, c := range []struct {
		cause string
		play  func(k *script)
	}{
		{"unknown", func(k *script) {
			begin(k)
			copyOnLTE(k)
			k.ack(wifi, 2000, 2000)
		}},
		{"rto", func(k *script) { // the timer retransmitted it on WiFi just before
			begin(k)
			k.wait(250)
			k.down(wifi, 1000, 1000, 1000)
			k.ack(wifi, 1000, 1000)
			copyOnLTE(k)
			k.ack(wifi, 2000, 2000)
		}},
		{"rto", func(k *script) { // silence exceeds the timeout
			begin(k)
			k.wait(300)
			copyOnLTE(k)
			k.ack(wifi, 2000, 2000)
		}},
		{"unknown", func(k *script) { // the receiver sent something in between
			begin(k)
			k.wait(150)
			k.ack(wifi, 1000, 1000)
			k.wait(100)
			copyOnLTE(k)
			k.ack(wifi, 2000, 2000)
		}},
		{"closed", func(k *script) {
			begin(k)
			k.send(wifi, server, packet.RST|packet.ACK, 101, 1201, 0)
			copyOnLTE(k)
		}},
		{"closed", func(k *script) {
			begin(k)
			k.send(server, wifi, packet.FIN|packet.ACK, 2201, 101, 0)
			copyOnLTE(k)
			k.ack(wifi, 2000, 2000)
		}},
		{"closed", func(k *script) {
			begin(k)
			k.send(lte, server, packet.ACK, 301, 401, 0, option(4, 0, byte(0)))
			copyOnLTE(k)
			k.ack(wifi, 2000, 2000)
		}},
		{"closed", func(k *script) { // silent forever, although the connection continues
			begin(k)
			copyOnLTE(k)
			k.wait(2000)
			k.down(lte, 1000, 1000, 2000)
		}},
		{"unknown", func(k *script) { // silent forever, because the connection ends
			begin(k)
			copyOnLTE(k)
			k.wait(20)
			k.ack(lte, 1000, 2000)
		}},
	} {
		k := newScript(t, 1)
		c.play(k)
		if r := k.end(); len(r.Reinjections) != 1 || r.Reinjections[0].Cause != c.cause || r.Reinjections[0].Bytes != 1000 {
			t.Errorf("%+v, want %s", r.Reinjections, c.cause)
		}
	}
}

// TestWindowCausesReinjection: the window is the cause for 50 ms after less
// than 5000 bytes of it were left.
func TestWindowCausesReinjection(t *testing.T) {
	for ms, cause := range map[int64]string{40: "window", 60: "unknown"} {
		k := newScript(t, 1)
		k.openMPTCP()
		k.joinLTE()
		k.down(wifi, 0, 1000, 0)
		k.ack(wifi, 1000, 1000) // the window ends at 1000 + 0xfff0 = 66520
		k.down(wifi, 1000, 60000, 1000)
		k.down(wifi, 61000, 1000, 61000) // 4520 are left
		k.wait(ms)
		k.down(lte, 0, 1000, 1000)
		k.ack(wifi, 62000, 62000)
		if r := k.end(); len(r.Reinjections) != 1 || r.Reinjections[0].Cause != cause {
			t.Errorf("%d ms: %+v", ms, r.Reinjections)
		}
	}
}

// TestLateCopyOfAcknowledgedData: data acknowledged long ago is still known.
func TestLateCopyOfAcknowledgedData(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	for i := range uint32(3000) {
		k.down(wifi, i*1000, 1000, uint64(i)*1000)
		k.ack(wifi, i*1000+1000, uint64(i)*1000+1000)
	}
	k.joinLTE()
	k.down(lte, 0, 2000, 100500)
	r := k.end()
	if got := reinjections(r); !slices.Equal(got, []string{"100500+2000 0→1 unknown acked"}) && !slices.Equal(got, []string{"100500+2000 0→1 rto acked"}) {
		t.Errorf("%q", got)
	}
	if i := r.Reinjections[0]; i.SinceOriginalMS < 5802 || i.SinceOriginalMS > 5804 {
		t.Errorf("%+v", i)
	}
}

// world is a random transfer over several subflows. For each byte of data it
// knows the subflows that carried it.
type world struct {
	k       *script
	random  *rand.Rand
	subs    []*path
	carried [][]bool // by subflow, byte of data
	unique  map[uint64]bool
	again   uint64
	againOn []uint64 // reinjected by subflow
}

// path is one subflow: the bytes that it sent, and their place in the data.
type path struct {
	from end
	seq  uint32   // relative: next new byte
	data []uint64 // by sent byte: its place in the data
	seen []bool   // captured
}

const worldISN = 0xfffff000 // sequence numbers wrap around

// send sends [lo, hi) of the data on a subflow; lost segments are not captured.
func (w *world) send(on int, lo, hi uint64, lost bool) {
	p := w.subs[on]
	at := p.seq
	for b := lo; b < hi; b++ {
		p.data = append(p.data, b)
		p.seen = append(p.seen, false)
	}
	p.seq += uint32(hi - lo)
	if !lost {
		w.transmit(on, at, p.seq)
	}
}

// transmit passes [lo, hi) of a subflow's bytes to the capture. Each part with
// consecutive data is a segment, whose mapping can extend beyond it.
func (w *world) transmit(on int, lo, hi uint32) {
	p := w.subs[on]
	for lo < hi {
		end := lo + 1
		for end < hi && p.data[end] == p.data[end-1]+1 {
			end++
		}
		mapLo, mapHi := lo, end
		for w.random.IntN(4) == 0 && mapLo > 0 && p.data[mapLo-1]+1 == p.data[mapLo] {
			mapLo--
		}
		for w.random.IntN(4) == 0 && int(mapHi) < len(p.data) && p.data[mapHi] == p.data[mapHi-1]+1 {
			mapHi++
		}
		signal := dss
		if w.random.IntN(2) == 0 {
			signal = dss32
		}
		w.k.send(server, p.from, packet.ACK, worldISN+1+lo, 101, int(end-lo),
			signal(w.k.first(keyS)+p.data[mapLo], 1+mapLo, uint16(mapHi-mapLo)))
		w.see(on, lo, end)
		lo = end
	}
}

// see applies the definitions byte by byte.
func (w *world) see(on int, lo, hi uint32) {
	p := w.subs[on]
	for i := lo; i < hi; i++ {
		b := p.data[i]
		if p.seen[i] {
			continue // retransmitted by TCP
		}
		p.seen[i] = true
		for int(b) >= len(w.carried[on]) {
			for s := range w.carried {
				w.carried[s] = append(w.carried[s], false)
			}
		}
		if w.unique[b] && !w.carried[on][b] {
			w.again++
			w.againOn[on]++
		}
		w.unique[b], w.carried[on][b] = true, true
	}
}

// TestAgainstModel compares unique and reinjected bytes with a model that
// tracks each byte.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(150) {
		playWorld(t, rand.New(rand.NewPCG(seed, 7)), fmt.Sprintf("seed %d", seed))
	}
}

func playWorld(t *testing.T, random *rand.Rand, name string) {
	n := 1 + random.IntN(4)
	w := &world{k: newScript(t, uint8(random.IntN(2))), random: random, unique: map[uint64]bool{}, carried: make([][]bool, n), againOn: make([]uint64, n)}
	w.open(n)
	next := uint64(0)
	for range 150 {
		on := random.IntN(n)
		p := w.subs[on]
		switch random.IntN(6) {
		case 0, 1, 2: // new data
			size := 1 + random.Uint64N(40)
			w.send(on, next, next+size, random.IntN(5) == 0)
			next += size
		case 3: // any data, as reinjection can choose it
			lo := random.Uint64N(next + 1)
			w.send(on, lo, lo+random.Uint64N(min(60, next-lo+1)), random.IntN(5) == 0)
		case 4: // TCP retransmission from anywhere
			if p.seq > 0 {
				lo := random.Uint32N(p.seq)
				w.k.wait(10)
				w.transmit(on, lo, lo+random.Uint32N(min(80, p.seq-lo)+1))
			}
		case 5:
			w.k.send(p.from, server, packet.ACK, 101, worldISN+1+p.seq, 0, dataACK(w.k.first(keyS)+random.Uint64N(next+1)))
		}
	}
	w.compare(t, name)
}

func (w *world) open(n int) {
	k := w.k
	for i := range n {
		from := end{wifi.addr, uint16(50000 + i)}
		w.subs = append(w.subs, &path{from: from})
		if i == 0 {
			k.send(from, server, packet.SYN, 100, 0, 0, k.capable(keyC))
			k.send(server, from, packet.SYN|packet.ACK, worldISN, 101, 0, k.capable(keyS))
			k.send(from, server, packet.ACK, 101, worldISN+1, 0, k.capable(keyC, keyS))
		} else {
			k.joinFrom(from, 100, worldISN, 0)
		}
	}
}

func (w *world) compare(t *testing.T, name string) {
	t.Helper()
	r := w.k.end()
	c, d := r.Connections[0], direct(t, r, "mptcp", "down", -1)
	if c.BytesDown != int64(len(w.unique)) || c.ReinjectedDn != int64(w.again) || d.UniqueBytes != c.BytesDown || d.ReinjectedBytes != c.ReinjectedDn {
		t.Errorf("%s: %d bytes, %d reinjected; the model has %d and %d", name, c.BytesDown, c.ReinjectedDn, len(w.unique), w.again)
	}
	var rows, bursts int64
	for _, i := range r.Reinjections {
		rows += i.Bytes
		if i.FromSubflow == i.ToSubflow || i.Bytes <= 0 || i.SinceOriginalMS < 0 {
			t.Errorf("%s: %+v", name, i)
		}
	}
	for _, b := range r.Bursts {
		bursts += b.Bytes
	}
	if rows != c.ReinjectedDn || bursts != c.BytesDown {
		t.Errorf("%s: %d bytes in reinjections, %d in bursts; want %d and %d", name, rows, bursts, c.ReinjectedDn, c.BytesDown)
	}
	for i, again := range w.againOn {
		if s := direct(t, r, "tcp", "down", int32(i)); s.ReinjectedBytes != int64(again) {
			t.Errorf("%s: subflow %d carried %d bytes again, want %d", name, i, s.ReinjectedBytes, again)
		}
	}
	if r.Warnings.UnmappedBytes+r.Warnings.MappingOutOfRange != 0 {
		t.Errorf("%s: %+v", name, r.Warnings)
	}
}
