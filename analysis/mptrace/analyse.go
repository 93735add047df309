package mptrace

import (
	"fmt"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Analyse reads captures, merged by time. What cannot be read is told in
// Files; the result holds all that was readable.
func Analyse(names []string) *tables.Result {
	rows := make([]tables.File, len(names))
	var opened []*capfile.File
	var index []int // of the opened files in rows
	for i, name := range names {
		rows[i] = tables.File{Name: name, Interfaces: []string{}}
		f, err := capfile.Open(name)
		if err != nil {
			rows[i].Partial, rows[i].Error = true, err.Error()
			continue
		}
		defer f.Close()
		rows[i].Format = f.Format
		opened, index = append(opened, f), append(index, i)
	}
	result := run(opened, func(file int) *tables.File { return &rows[index[file]] })
	result.Files = rows
	return result
}

// run merges open captures into an engine and fills in their rows.
func run(files []*capfile.File, row func(int) *tables.File) *tables.Result {
	e := NewEngine()
	var verdicts [packet.Verdicts]int64
	interfaces := newInterfaces(len(files))
	merger := capfile.NewMerger(files)
	var p packet.Packet
	for {
		r, file := merger.Next()
		if r == nil {
			break
		}
		row(file).Packets++
		if !packet.KnownLink(r.LinkType) {
			e.warnings.FramesUnknownLink++
			continue
		}
		verdict := packet.Decode(r.LinkType, r.Data, r.OrigLen, &p)
		verdicts[verdict]++
		if verdict != packet.TCP {
			continue
		}
		row(file).TCP++
		p.TimeNS, p.Iface = r.TimeNS, interfaces.number(file, files[file], r.Iface)
		e.Add(&p)
	}
	e.warnings.FramesFragment = verdicts[packet.Fragment]
	e.warnings.FramesTruncated = verdicts[packet.Truncated]
	e.warnings.FramesHidden = verdicts[packet.Hidden]
	e.warnings.FramesMalformed = verdicts[packet.Malformed]
	for i, f := range files {
		describe(row(i), f, merger.Err(i))
	}
	return e.Result(interfaces.names)
}

func describe(row *tables.File, f *capfile.File, err error) {
	for _, iface := range f.Interfaces() {
		row.Interfaces = append(row.Interfaces, iface.Name)
		row.Dropped += int64(iface.Dropped)
	}
	if err != nil {
		row.Partial = true
		row.Error = fmt.Sprintf("%v after packet %d", err, row.Packets)
	}
}

// interfaces numbers the interfaces of all files.
type interfaces struct {
	names   []string
	numbers [][]int32 // by file and interface of the file; −1: none yet
}

func newInterfaces(files int) *interfaces {
	return &interfaces{numbers: make([][]int32, files)}
}

func (n *interfaces) number(file int, f *capfile.File, iface int) int32 {
	for len(n.numbers[file]) <= iface {
		n.numbers[file] = append(n.numbers[file], -1)
	}
	if n.numbers[file][iface] < 0 {
		n.numbers[file][iface] = int32(len(n.names))
		n.names = append(n.names, f.Interfaces()[iface].Name)
	}
	return n.numbers[file][iface]
}
