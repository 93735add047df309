package xplot

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mplab/analysis/mptrace/internal/fixture"
	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// diagram is a file as xplot reads it.
type diagram struct {
	title, x, y string
	commands    []string
}

// Keywords of xplot: types of axes, commands by their number of points,
// commands with a line of text, colours.
var (
	types   = []string{"unsigned", "signed", "timeval", "dtime", "double"}
	points  = map[string]int{"x": 1, "dot": 1, "plus": 1, "box": 1, "diamond": 1, "line": 2, "dline": 2, "invisible": 1}
	ticks   = []string{"tick", "arrow"}
	texts   = []string{"atext", "btext", "ltext", "rtext", "ctext"}
	colours = []string{"white", "green", "red", "blue", "yellow", "purple", "orange", "magenta", "pink"}
)

// parse reads a file as xplot does, and checks every line.
func parse(content string) (*diagram, error) {
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	axes := strings.Fields(lines[0])
	if len(axes) != 2 || !slices.Contains(types, axes[0]) || !slices.Contains(types, axes[1]) {
		return nil, fmt.Errorf("axes %q", lines[0])
	}
	d := &diagram{}
	for i := 1; i < len(lines); i++ {
		words := strings.Fields(lines[i])
		if len(words) == 0 {
			return nil, fmt.Errorf("line %d is empty", i+1)
		}
		label := map[string]*string{"title": &d.title, "xlabel": &d.x, "ylabel": &d.y}[words[0]]
		text := slices.Contains(texts, words[0])
		if label != nil || text {
			if i++; i >= len(lines) {
				return nil, errors.New("ends before a text does")
			}
		}
		switch {
		case label != nil && len(words) == 1:
			*label = lines[i]
			continue
		case words[0] == "go" && len(words) == 1:
			if i != len(lines)-1 {
				return nil, errors.New("there is more behind go")
			}
			return d, nil
		}
		if err := command(words, text); err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", i+1, lines[i], err)
		}
		if text {
			words = append(words, lines[i])
		}
		d.commands = append(d.commands, strings.Join(words, " "))
	}
	return nil, errors.New("does not go")
}

func command(words []string, text bool) error {
	n := points[words[0]]
	if text {
		n = 1
	}
	for _, direction := range "udlrhv" {
		for _, tick := range ticks {
			if words[0] == string(direction)+tick {
				n = 1
			}
		}
	}
	if n == 0 {
		return errors.New("no command")
	}
	if len(words) != 2*n+2 || !slices.Contains(colours, words[len(words)-1]) {
		return errors.New("wrong number of words, or colour")
	}
	for k := range n {
		seconds, fraction, _ := strings.Cut(words[1+2*k], ".")
		if _, err := strconv.ParseUint(seconds, 10, 64); err != nil || len(fraction) != 6 {
			return errors.New("wrong time")
		}
		if _, err := strconv.ParseUint(fraction, 10, 64); err != nil {
			return err
		}
		if _, err := strconv.ParseFloat(words[2+2*k], 64); err != nil {
			return err
		}
	}
	return nil
}

func load(t *testing.T, dir, name string) *diagram {
	t.Helper()
	d, err := parse(fixture.Read(t, dir, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

const begin = 1_700_000_000_000_000_000

func connect(id int32, subflows int) *mptcp.Conn {
	c := &mptcp.Conn{ID: id, MPTCP: subflows > 1}
	for i := range subflows {
		flow := &tcp.Flow{Ends: [2]tcp.Endpoint{fixture.End("10.0.0.1:4000"), fixture.End("10.9.0.9:80")}}
		c.Subs = append(c.Subs, &mptcp.Sub{Conn: c, ID: int32(i), Flow: flow})
	}
	return c
}

// want checks that a diagram has these commands in this order, possibly among
// others.
func want(t *testing.T, d *diagram, commands ...string) {
	t.Helper()
	rest := d.commands
	for _, c := range commands {
		at := slices.Index(rest, c)
		if at < 0 {
			t.Errorf("no %q, or not in its place, in\n%s", c, strings.Join(d.commands, "\n"))
			return
		}
		rest = rest[at+1:]
	}
}

// TestPlain: plain TCP is drawn as in tcptrace.
func TestPlain(t *testing.T) {
	dir := t.TempDir()
	o, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(3, 1)
	s := c.Subs[0]
	at := func(ms int64) int64 { return begin + ms*1e6 }
	const sack = "\x05\x0a\x00\x00\x17\x71\x00\x00\x1b\x59" // 6001 to 7001
	o.Ack(s, mptcp.Up, at(0), 0, 100)                       // of no data
	o.Data(s, mptcp.Up, at(1), 0, 1000, nil)
	o.Segment(s, mptcp.Up, &tcp.Segment{Packet: &packet.Packet{TimeNS: at(1)}, Lo: 5001, Hi: 6001})
	o.Data(s, mptcp.Up, at(2), 1000, 2000, nil)
	o.Segment(s, mptcp.Up, &tcp.Segment{Packet: &packet.Packet{TimeNS: at(2)}, Lo: 6001, Hi: 7001})
	o.Ack(s, mptcp.Up, at(3), 0, 5000)
	o.Ack(s, mptcp.Up, at(4), 0, 5000)
	o.Segment(s, mptcp.Down, &tcp.Segment{Packet: &packet.Packet{TimeNS: at(4), Has: packet.HasSACK, Options: []byte(sack)}})
	o.Data(s, mptcp.Up, at(5), 0, 1000, s)
	o.Segment(s, mptcp.Up, &tcp.Segment{Packet: &packet.Packet{TimeNS: at(5)}, Lo: 5001, Hi: 6001})
	o.Ack(s, mptcp.Up, at(6), 2000, 5000)
	o.Event(s, &tables.Event{Event: "fin", Direction: "up", TimeNS: at(7)})
	o.Event(s, &tables.Event{Event: "fin", Direction: "down", TimeNS: at(7)})
	o.End(c, nil)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("%v: there was data in one direction", entries)
	}
	seq := load(t, dir, "c2s_seq_3.xpl")
	if seq.title != "10.0.0.1:4000_==>_10.9.0.9:80 (time sequence graph)" || seq.x != "time" || seq.y != "sequence offset" {
		t.Errorf("%+v", seq)
	}
	const z = "1700000000.00"
	want(t, seq, "line "+z+"1000 0 "+z+"1000 1000 white", "darrow "+z+"1000 0 white", "uarrow "+z+"1000 1000 white",
		"dtick "+z+"4000 0 green", "utick "+z+"4000 5000 yellow",
		"line "+z+"4000 1000 "+z+"4000 2000 purple", "rtext "+z+"4000 2000 purple S",
		"line "+z+"5000 0 "+z+"5000 1000 red", "atext "+z+"5000 1000 red R",
		"line "+z+"6000 0 "+z+"6000 2000 green", "line "+z+"6000 5000 "+z+"6000 7000 yellow", "atext "+z+"7000 2000 orange FIN")
	want(t, load(t, dir, "c2s_rtt_3.xpl"), "dot "+z+"6000 4.000 red") // of the segment that was not retransmitted
	want(t, load(t, dir, "c2s_tput_3.xpl"), "dot "+z+"5000 500000.000 red")
}

// TestMPTCP: each subflow has a colour, and reinjected data an R in the colour
// of the subflow that carried it first.
func TestMPTCP(t *testing.T) {
	dir := t.TempDir()
	o, _ := New(dir)
	c := connect(0, 2)
	a, b := c.Subs[0], c.Subs[1]
	b.Turned = true
	b.Flow.Ends[0], b.Flow.Ends[1] = b.Flow.Ends[1], b.Flow.Ends[0]
	o.Mapping(b, mptcp.Down, begin, 0, 2000)
	o.Data(b, mptcp.Down, begin, 0, 1000, nil)
	o.Data(b, mptcp.Down, begin+1e3, 0, 1000, b)
	o.Data(a, mptcp.Down, begin+2e3, 500, 1000, b)
	o.Ack(a, mptcp.Down, begin+3e3, 1000, 10)
	o.Ack(a, mptcp.Down, begin+4e3, 1000, 10)
	o.End(c, nil)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	seq := load(t, dir, "s2c_seq_0.xpl")
	if !strings.HasPrefix(seq.title, "10.9.0.9:80_==>_10.0.0.1:4000 ") {
		t.Errorf("%q", seq.title)
	}
	const z = "1700000000.00000"
	want(t, seq, "darrow "+z+"0 0 red", "uarrow "+z+"0 2000 red", "line "+z+"0 0 "+z+"0 1000 red", "atext "+z+"1 1000 red r",
		"line "+z+"2 500 "+z+"2 1000 green", "atext "+z+"2 1000 red R", "dtick "+z+"4 1000 white", "utick "+z+"4 1010 yellow")
	want(t, load(t, dir, "s2c_rtt_0.xpl"), "dot "+z+"3 0.003 red")
}

// TestThroughput: windows of 250 segments, and a partial one.
func TestThroughput(t *testing.T) {
	dir := t.TempDir()
	o, _ := New(dir)
	c := connect(0, 1)
	for i := range uint64(600) {
		now := begin + int64(i)*1e6
		o.Data(c.Subs[0], mptcp.Up, now, i*1000, i*1000+1000, nil)
		o.Segment(c.Subs[0], mptcp.Up, &tcp.Segment{Packet: &packet.Packet{TimeNS: now}, Lo: i * 1000, Hi: i*1000 + 1000})
	}
	o.End(c, nil)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	d := load(t, dir, "c2s_tput_0.xpl")
	want(t, d, "dot 1700000000.249000 1004016.064 red", "dot 1700000000.499000 1000000.000 red",
		"line 1700000000.249000 1004016.064 1700000000.499000 1002004.008 blue", "dot 1700000000.599000 1000000.000 red")
	if len(d.commands) != 3+2*2 {
		t.Errorf("%d commands", len(d.commands))
	}
}

// TestCaptures: every file made from the captures is readable and contains each
// byte of new data.
func TestCaptures(t *testing.T) {
	for _, names := range [][]string{
		{"../../../testdata/two-paths-wlan0.pcapng", "../../../testdata/two-paths-rmnet0.pcapng"},
		{"../../../testdata/retransmissions-wlan0.pcapng"},
	} {
		dir := t.TempDir()
		o, _ := New(dir)
		in := source.Open(names, source.Options{})
		var warnings tables.Warnings
		sink := tables.NewMemorySink(tables.All, 0)
		engine := mptcp.New(mptcp.Options{Observer: o}, sink, &warnings)
		tracker := tcp.NewTracker(tcp.Options{OnEnd: engine.EndFlow, OnRetransmission: engine.Retransmission})
		var block source.Block
		var seg tcp.Segment
		for in.Next(&block) {
			for p := range in.Packets(&block) {
				tracker.Add(p, &seg)
				engine.Add(&seg)
			}
		}
		tracker.Close()
		engine.Close()
		in.Close()
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		files := 0
		for _, row := range sink.Result(nil, warnings).Connections {
			for way, bytes := range map[string]int64{"c2s": row.BytesUp, "s2c": row.BytesDown} {
				if bytes == 0 {
					continue
				}
				files += 3
				for _, kind := range []string{"seq", "tput", "rtt"} {
					d := load(t, dir, fmt.Sprintf("%s_%s_%d.xpl", way, kind, row.ConnectionID))
					acks := map[string]string{"tcp": "green", "mptcp": "white"}[row.Kind]
					if got := covered(d, acks); kind == "seq" && got != bytes {
						t.Errorf("%s of %d has %d bytes, want %d", way, row.ConnectionID, got, bytes)
					}
				}
			}
		}
		if entries, _ := os.ReadDir(dir); len(entries) != files || files == 0 {
			t.Errorf("%d files, want %d", len(entries), files)
		}
	}
}

// covered returns the number of bytes covered by vertical lines other than
// those of acknowledgements and windows.
func covered(d *diagram, acks string) int64 {
	type span struct{ lo, hi int64 }
	var spans []span
	for _, c := range d.commands {
		w := strings.Fields(c)
		if w[0] != "line" || w[1] != w[3] || slices.Contains([]string{"yellow", "purple", acks}, w[5]) {
			continue
		}
		lo, _ := strconv.ParseInt(w[2], 10, 64)
		hi, _ := strconv.ParseInt(w[4], 10, 64)
		spans = append(spans, span{lo, hi})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	var n, at int64
	for _, s := range spans {
		if s.hi > at {
			n += s.hi - max(s.lo, at)
			at = s.hi
		}
	}
	return n
}
