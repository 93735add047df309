package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// trace is a capture file with the counts of its content.
type trace struct {
	Name        string   `json:"name"`
	What        string   `json:"what"`
	File        string   `json:"file"`
	Packets     int64    `json:"packets"`
	Connections int64    `json:"connections"`
	MPTCP       int64    `json:"mptcp_connections"`
	Flows       int64    `json:"flows"`
	Bytes       [2]int64 `json:"bytes"` // of the applications, up and down
	profile
}

// factory creates traces in a directory, and keeps existing ones.
type factory struct {
	dir     string
	packets int64 // minimum number of packets per trace
	short   int   // number of connections to record
}

// recording makes the captures of a kind if they are missing, and loads them.
func (f factory) recording(kind string) ([]frame, error) {
	done := filepath.Join(f.dir, kind+".recorded")
	if _, err := os.Stat(done); err != nil {
		fmt.Fprintf(os.Stderr, "recording %s\n", kind)
		record := map[string]func(string) error{
			"bulk": recordBulk, "many": recordMany,
			"short": func(dir string) error { return recordShort(dir, f.short) },
		}
		if err := record[kind](f.dir); err != nil {
			return nil, err
		}
		if err := os.WriteFile(done, nil, 0o644); err != nil {
			return nil, err
		}
	}
	return load(f.dir, kind)
}

// make creates a trace by name: bulk, bulk-pcapng, bulk-v0, many or short.
func (f factory) make(name string) (*trace, error) {
	file := f.file(name)
	if t, err := readManifest(file); err == nil {
		return t, nil
	}
	var t *trace
	err := replace(file, func(out io.Writer) (err error) {
		t, err = f.write(name, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.File = file
	b, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return t, os.WriteFile(file+".json", b, 0o644)
}

func (f factory) file(name string) string {
	return filepath.Join(f.dir, fmt.Sprintf("%s-%d.pcap", name, f.packets))
}

func readManifest(file string) (*trace, error) {
	b, err := os.ReadFile(file + ".json")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	t := new(trace)
	return t, json.Unmarshal(b, t)
}

// replace writes a file that appears complete or not at all.
func replace(name string, write func(io.Writer) error) error {
	out, err := os.Create(name + ".partial")
	if err != nil {
		return err
	}
	if err := errors.Join(write(out), out.Close()); err != nil {
		_ = os.Remove(out.Name())
		return err
	}
	return os.Rename(out.Name(), name)
}

// write writes a trace to a stream.
func (f factory) write(name string, out io.Writer) (*trace, error) {
	switch name {
	case "short":
		return f.writeRounds(out, name, "connections of 10 to 100 kB, TCP and MPTCP")
	case "many":
		return f.writeRounds(out, name, "transfers of 5 MB over two subflows with 0.4 % loss, 16 at a time")
	}
	frames, err := f.recording("bulk")
	if err != nil {
		return nil, err
	}
	shown := frames
	t := &trace{Name: name, What: "one transfer over two subflows", Connections: 1, MPTCP: 1, Flows: 2}
	if name == "bulk-v0" {
		shown, t.What = translated(frames, 0, 0), t.What+", MPTCP version 0"
	}
	e, err := extend(frames, shown)
	if err != nil {
		return nil, err
	}
	w, laps := newWriter(out, name == "bulk-pcapng"), e.laps(f.packets)
	if name == "bulk-pcapng" {
		t.What += ", pcapng"
	}
	for _, sent := range totals(frames) {
		for direction := range 2 {
			t.Bytes[direction] += sent[direction] + int64(e.lapBytes[direction])*(laps-1)
		}
	}
	err = e.write(w, laps)
	t.Packets = w.count
	return t, err
}

// writeRounds repeats recorded connections with other addresses, keys and
// times.
func (f factory) writeRounds(out io.Writer, name, what string) (*trace, error) {
	frames, err := f.recording(name)
	if err != nil {
		return nil, err
	}
	w := newWriter(out, false)
	t := &trace{Name: name, What: what}
	each := totals(frames)
	mptcp, flows := census(frames)
	span := frames[len(frames)-1].timeNS - frames[0].timeNS + 1e9
	for round := uint64(0); w.count < f.packets; round++ {
		for _, one := range translated(frames, 1, round) {
			one.timeNS += int64(round) * span
			if round > 0 {
				one = one.moved(byte(round))
			}
			if err := w.frame(&one); err != nil {
				return nil, err
			}
		}
		t.Connections += int64(len(each))
		t.MPTCP += mptcp
		t.Flows += flows
		for _, sent := range each {
			t.Bytes[0] += sent[0]
			t.Bytes[1] += sent[1]
		}
	}
	t.Packets = w.count
	return t, w.flush()
}

// moved replaces the addresses of client and server by 10.x.ROUND.y.
func (f frame) moved(round byte) frame {
	h, _ := headers(f.data)
	rest := checksumRest(f.data, h)
	b := append([]byte(nil), f.data...)
	b[ipAt+14], b[ipAt+18] = round, round
	reseal(b, h)
	resealTCP(b, h, rest)
	f.data = b
	return f
}

// translated rewrites each frame for other keys or another version.
func translated(frames []frame, version uint8, round uint64) []frame {
	if version == 1 && round == 0 {
		return frames
	}
	places := learn(frames)
	all := make([]frame, len(frames))
	for i, f := range frames {
		all[i] = remade(f, places, version, round)
	}
	return all
}

// totals returns the bytes that each connection of a recording carried up and
// down.
func totals(frames []frame) map[any]*[2]int64 {
	places, sent, isn := learn(frames), map[any]*[2]int64{}, map[flowKey]uint32{}
	for i := range frames {
		f := &frames[i]
		h, _ := headers(f.data)
		k := keyOf(f.data, h)
		seq := binary.BigEndian.Uint32(f.data[h.tcp+4:])
		if flagsOf(f.data, h)&flagSYN != 0 {
			isn[k] = seq
		}
		p, multipath := places[k]
		sender := senderOf(k)
		var owner any = p.conn
		if !multipath {
			owner = k
			if sender == 1 {
				owner = k.turned()
			}
		}
		if sent[owner] == nil {
			sent[owner] = new([2]int64)
		}
		most := &sent[owner][sender]
		if !multipath {
			if n := payload(f, h); n > 0 {
				*most = max(*most, int64(seq-isn[k]-1)+int64(n))
			}
			continue
		}
		options(f.data, h, func(at, size int) {
			if f.data[at] == optionMPTCP {
				*most = max(*most, mapped(f.data[at:at+size], p.conn.idsn[sender], *most))
			}
		})
	}
	return sent
}

// mapped returns the end of the data of its direction that an MPTCP option
// maps; most is the previous end.
func mapped(o []byte, idsn uint64, most int64) int64 {
	const dataFIN = 16
	switch {
	case o[2]>>4 == subCapable && len(o) >= 22:
		return int64(binary.BigEndian.Uint16(o[20:]))
	case o[2]>>4 == subDSS && len(o) >= 4 && o[3]&dssMap != 0:
		d := dssOf(o)
		end := int64(relative(o[d.dsn:], d.dsn64, idsn, uint64(most))) + int64(binary.BigEndian.Uint16(o[d.ssn+4:]))
		if o[3]&dataFIN != 0 {
			end--
		}
		return end
	}
	return 0
}

// census counts the MPTCP connections and all flows.
func census(frames []frame) (mptcp, flows int64) {
	seen, conns := map[flowKey]bool{}, map[*learned]bool{}
	places := learn(frames)
	for i := range frames {
		h, _ := headers(frames[i].data)
		k := keyOf(frames[i].data, h)
		if senderOf(k) == 1 {
			k = k.turned()
		}
		seen[k] = true
		if p, ok := places[k]; ok {
			conns[p.conn] = true
		}
	}
	return int64(len(conns)), int64(len(seen))
}
