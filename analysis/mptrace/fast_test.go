package mptrace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/tables"
)

// captures returns all captures of the tests.
func captures(tb testing.TB) []string {
	var all []string
	for _, pattern := range []string{"*.pcapng", "*.pcapng.gz", "handmade/*.pcap*", "kernel/*.pcap*"} {
		names, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(names) == 0 {
			tb.Fatal(pattern, err)
		}
		all = append(all, names...)
	}
	return all
}

// ways are the ways in which packets can be processed.
func ways(seed uint64) map[string]func() bool {
	dice := rand.New(rand.NewPCG(seed, 7))
	slow := false
	return map[string]func() bool{
		"fast":            nil,
		"fast or slow":    func() bool { return dice.IntN(2) == 0 },
		"runs of slow":    func() bool { slow = slow != (dice.IntN(40) == 0); return slow },
		"now and then":    func() bool { return dice.IntN(50) == 0 },
		"seldom the fast": func() bool { return dice.IntN(20) > 0 },
	}
}

// text returns all tables of captures as JSON. slow decides whether a packet
// goes the slow way; nil: none does.
func text(t *testing.T, threads int, slow func() bool, names ...string) string {
	t.Helper()
	r, err := Analyse(names, Options{Keep: tables.All, slow: slow, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b, tables.All); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func always() bool { return true }

// sameOnAllWays compares all ways with the slow one.
func sameOnAllWays(t *testing.T, seed uint64, names ...string) {
	t.Helper()
	want := text(t, 1, always, names...)
	for way, slow := range ways(seed) {
		for _, threads := range [...]int{1, 3} {
			if got := text(t, threads, slow, names...); got != want {
				t.Errorf("%v: seed %d: %s, %d threads: the tables differ: %s", names, seed, way, threads, difference(got, want))
			}
		}
	}
}

// difference returns the places around the first difference of two texts.
func difference(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	part := func(s string) string { return s[max(0, i-120):min(len(s), i+40)] }
	return fmt.Sprintf("\n%s\n%s", part(a), part(b))
}

// TestFastPath: the tables of real and hand-made captures do not depend on
// which packets take the fast path.
func TestFastPath(t *testing.T) {
	for i, name := range captures(t) {
		sameOnAllWays(t, uint64(i), name)
	}
	sameOnAllWays(t, 99, "testdata/two-paths-wlan0.pcapng", "testdata/two-paths-rmnet0.pcapng")
}

// TestFastPathOfDamage repeats that with captures that were changed at random.
func TestFastPathOfDamage(t *testing.T) {
	recorded := []recording{
		records(t, "testdata/phone-v1.pcapng.gz"), records(t, "testdata/two-paths-wlan0.pcapng"),
		records(t, "testdata/retransmissions-wlan0.pcapng"), records(t, "testdata/two-paths-rmnet0.pcapng"),
	}
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	name := filepath.Join(t.TempDir(), "damaged.pcap")
	for round := range uint64(rounds) {
		dice := rand.New(rand.NewPCG(round, 1))
		of := recorded[dice.IntN(len(recorded))]
		all := of.records
		from := dice.IntN(len(all))
		part := all[from:min(len(all), from+200+dice.IntN(3000))]
		if dice.IntN(2) == 0 {
			part = all[:min(len(all), 3000)]
		}
		odds := []int{1 << 30, 500, 50, 10}[dice.IntN(4)]
		write(t, name, part, of.link, odds, dice)
		sameOnAllWays(t, round, name)
	}
}

// recording is the content of a capture.
type recording struct {
	records []capfile.Record
	link    int
}

func records(t *testing.T, name string) recording {
	var all []capfile.Record
	f, err := capfile.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		var batch capfile.Batch // a new one each time: the records point into it
		if err = f.Read(&batch); err != nil {
			break
		}
		all = append(all, batch.Records...)
	}
	if err != io.EOF {
		t.Fatal(name, err)
	}
	return recording{all, f.Interfaces()[0].LinkType}
}

// write writes records to a pcap file. One in `odds` is damaged: it is lost,
// repeated, moved, cut or changed, or has another time.
func write(t *testing.T, name string, part []capfile.Record, link, odds int, dice *rand.Rand) {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b23c4d)
	b = append(b, make([]byte, 12)...)
	b = le.AppendUint32(le.AppendUint32(b, 1<<18), uint32(link))
	record := func(r capfile.Record, data []byte) {
		b = le.AppendUint32(le.AppendUint32(b, uint32(r.TimeNS/1e9)), uint32(r.TimeNS%1e9))
		b = append(le.AppendUint32(le.AppendUint32(b, uint32(len(data))), r.OrigLen), data...)
	}
	for i := 0; i < len(part); i++ {
		r := part[i]
		data := bytes.Clone(r.Data)
		if dice.IntN(odds) == 0 {
			switch dice.IntN(7) {
			case 0: // lost
				continue
			case 1: // twice
				record(r, data)
			case 2: // overtaken
				if i+1 < len(part) {
					record(part[i+1], part[i+1].Data)
					i++
				}
			case 3: // cut
				data = data[:dice.IntN(len(data)+1)]
			case 4: // changed
				data[dice.IntN(len(data))] ^= 1 << dice.IntN(8)
			case 5: // another time
				r.TimeNS += dice.Int64N(20e9) - 10e9
			case 6: // another length
				r.OrigLen += uint32(dice.IntN(5000))
			}
		}
		record(r, data)
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFastPathIsUsed: most packets of a recorded transfer take the fast path.
// Otherwise the other tests would prove nothing.
func TestFastPathIsUsed(t *testing.T) {
	for _, name := range []string{"phone-v1.pcapng.gz", "phone-v0.pcapng.gz", "two-paths-wlan0.pcapng"} {
		r, err := Analyse([]string{filepath.Join("testdata", name)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if all := r.Files[0].TCP; 2*r.FastPackets < all {
			t.Errorf("%s: %d of %d packets", name, r.FastPackets, all)
		}
	}
}

// TestEarlierConnectionsChangeNothing: the rows of connections do not depend on
// those before them, whose memory they use again.
func TestEarlierConnectionsChangeNothing(t *testing.T) {
	all := records(t, "testdata/phone-v1.pcapng.gz")
	const laterNS = 3 * 3600e9
	name := filepath.Join(t.TempDir(), "twice.pcap")
	twice := all.records
	for _, r := range all.records {
		r.TimeNS += laterNS
		twice = append(twice, r)
	}
	dice := rand.New(rand.NewPCG(1, 0))
	write(t, name, twice, all.link, 1<<30, dice)
	r, err := Analyse([]string{name}, Options{Keep: tables.All})
	if err != nil {
		t.Fatal(err)
	}
	same(t, r.RTT, func(row *tables.RTT) { row.ConnectionID, row.TimeNS = 0, row.TimeNS%laterNS })
	same(t, r.Retransmissions, func(row *tables.Retransmission) { row.ConnectionID, row.TimeNS = 0, row.TimeNS%laterNS })
	same(t, r.Reinjections, func(row *tables.Reinjection) { row.ConnectionID, row.TimeNS = 0, row.TimeNS%laterNS })
	same(t, r.ACKSizes, func(row *tables.ACKSize) { row.ConnectionID = 0 })
	same(t, r.Bursts, func(row *tables.Burst) { row.ConnectionID, row.StartNS = 0, row.StartNS%laterNS })
}

// same compares the first half of some rows with the second half.
func same[R comparable](t *testing.T, rows []R, reduce func(*R)) {
	t.Helper()
	half := len(rows) / 2
	if half == 0 || len(rows)%2 != 0 {
		t.Errorf("%d rows", len(rows))
		return
	}
	for i := range rows {
		reduce(&rows[i])
	}
	for i := range half {
		if rows[i] != rows[half+i] {
			t.Errorf("row %d:\n%+v\n%+v", i, rows[i], rows[half+i])
			return
		}
	}
}
