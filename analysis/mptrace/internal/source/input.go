package source

import (
	"encoding/binary"
	"iter"
	"math"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// input is a file that is being read.
type input struct {
	file    *capfile.File
	row     *tables.File
	size    int              // bytes to read at once
	batch   *batch           // batch that contains the records
	records []capfile.Record // of batch
	at      int              // index of the next record
	head    int64            // time of the next record
	err     error            // reason why nothing follows the batch
	ifaces  []*iface         // by number in the file
}

// take appends the records of an input up to a time to a block, until the block
// is full.
func (s *Source) take(in *input, until int64, b *Block) {
	from, to := in.at, min(len(in.records), in.at+blockSize-b.records)
	if in.at = to; until < math.MaxInt64 {
		for in.at = from; in.at < to && in.records[in.at].TimeNS <= until; in.at++ {
		}
	}
	if in.at < len(in.records) {
		in.head = in.records[in.at].TimeNS
	}
	b.Runs = append(b.Runs, Run{in.records[from:in.at], in.row, in.ifaces})
	b.records += in.at - from
	s.hold(b, in.batch)
}

// hold keeps a batch until a block is released.
func (s *Source) hold(b *Block, held *batch) {
	if held.fill != s.fills {
		held.fill = s.fills
		held.users++
		b.batches = append(b.batches, held)
	}
}

// Decode decodes a record of a run. It returns false if the record contains no
// TCP segment.
func (s *Source) Decode(run *Run, r *capfile.Record, p *packet.Packet) bool {
	from := run.ifaces[r.Iface]
	if verdict := packet.Decode(from.link, r.Data, int(r.OrigLen), p); verdict != packet.TCP && !s.inTunnel(from, verdict, r, p) {
		return false
	}
	run.row.TCP++
	p.TimeNS, p.Iface = r.TimeNS, from.number
	if from.links != nil {
		p.Iface = s.link(from, r.Data)
	}
	if p.Quirks&(packet.FirstFragment|packet.OptionsCut|packet.LengthDamaged) != 0 || p.Has&packet.HasBad != 0 {
		s.odd(p)
	}
	if s.options.Rewrite != nil {
		s.options.Rewrite(p)
	}
	return true
}

// DecodeAgain decodes a record once more, without counting it.
func (run *Run) DecodeAgain(r *capfile.Record, p *packet.Packet) {
	from := run.ifaces[r.Iface]
	packet.Decode(from.link, r.Data, int(r.OrigLen), p)
	p.TimeNS, p.Iface = r.TimeNS, from.number
}

// Packets decodes the segments of a block. A packet is valid until the next one.
func (s *Source) Packets(b *Block) iter.Seq[*packet.Packet] {
	return func(yield func(*packet.Packet) bool) {
		var p packet.Packet
		for i := range b.Runs {
			run := &b.Runs[i]
			for j := range run.Records {
				if s.Decode(run, &run.Records[j], &p) && !yield(&p) {
					return
				}
			}
		}
	}
}

// IP returns the packet in a record, from its IP header, if its link-layer
// header is the usual one; otherwise nil. wire is its length on the wire.
func (run *Run) IP(r *capfile.Record) (ip []byte, wire int) {
	from := run.ifaces[r.Iface]
	if len(r.Data) <= from.ipAt || !packet.IsIP(binary.BigEndian.Uint16(r.Data[from.typeAt:])) {
		return nil, 0
	}
	return r.Data[from.ipAt:], max(int(r.OrigLen), len(r.Data)) - from.ipAt
}

// Done counts a record whose segment was processed without Decode.
func (s *Source) Done(run *Run, r *capfile.Record) {
	run.row.TCP++
	if from := run.ifaces[r.Iface]; from.links != nil {
		s.link(from, r.Data)
	}
}

// firstInterface returns the name of the first record's interface.
func (in *input) firstInterface() string { return in.file.Interfaces()[in.records[0].Iface].Name }

const (
	// outOfPlace is how far a time stamp must be from its neighbours on the
	// same interface to count as damaged.
	outOfPlace = 3600e9
	// mostOutOfPlace is the maximum number of consecutive damaged stamps. More
	// mean that the clock was set.
	mostOutOfPlace = 8
)

// repair replaces each damaged time stamp by that of the record before it and
// returns their number. At the end of a file there is no later record to
// compare with.
func (in *input) repair() (repaired int64) {
	apart := func(a, b *capfile.Record) bool {
		d := a.TimeNS - b.TimeNS
		return max(d, -d) > outOfPlace
	}
	r := in.records
	for i := 1; i+1 < len(r); i++ {
		before := &r[i-1]
		if !apart(&r[i], before) {
			continue
		}
		for j := i; j < len(r) && j <= i+mostOutOfPlace && r[j].Iface == before.Iface; j++ {
			if apart(&r[j], before) {
				continue
			}
			for k := i; k < j; k++ {
				r[k].TimeNS = before.TimeNS
			}
			repaired += int64(j - i)
			break
		}
	}
	return repaired
}

// inTunnel decodes the segment in a tunnel. It returns false for a frame without
// a segment, which it counts.
func (s *Source) inTunnel(from *iface, verdict packet.Verdict, r *capfile.Record, p *packet.Packet) bool {
	link, frame := from.link, r.Data
	if s.options.Tunnels && verdict == packet.Other {
		if inner, ok := packet.Untunnel(link, frame, int(r.OrigLen)); ok {
			link, frame = inner.LinkType, inner.Frame
			verdict = packet.Decode(link, frame, inner.OrigLen, p)
		}
	}
	if verdict == packet.TCP {
		return true
	}
	if from.known {
		s.other(link, frame, verdict, r.TimeNS)
	} else {
		s.warnings.FramesUnknownLink++
	}
	return false
}

// other counts a frame without a TCP segment, and reports a DNS answer in it.
func (s *Source) other(link int, frame []byte, verdict packet.Verdict, timeNS int64) {
	switch {
	case verdict == packet.Other && packet.Tunnelled(link, frame):
		s.warnings.FramesTunnelled++
	default:
		s.verdicts[verdict]++
	}
	if verdict == packet.Other && s.options.Answer != nil {
		if port, message, ok := packet.Datagram(link, frame); ok && port == portDNS {
			s.options.Answer(message, timeNS)
		}
	}
}

// odd counts the defects of a segment.
func (s *Source) odd(p *packet.Packet) {
	if p.Quirks&packet.FirstFragment != 0 {
		s.warnings.SegmentsFragmented++
	}
	if p.Quirks&packet.LengthDamaged != 0 {
		s.warnings.SegmentsOverlong++
	}
	if p.Quirks&packet.OptionsCut != 0 {
		s.warnings.OptionsCut++
	}
	if p.Has&packet.HasBad != 0 {
		s.warnings.OptionsMalformed++
	}
}

// Files describes how much of each file was read, in the order of the given
// names. It is complete when Next has returned false and all records were
// decoded.
func (s *Source) Files() []tables.File {
	for _, in := range s.opened {
		in.describe()
	}
	return s.rows
}

// Warnings adds the counts of unusable frames and segments.
func (s *Source) Warnings(w *tables.Warnings) {
	w.FramesMalformed += s.verdicts[packet.Malformed]
	w.FramesTruncated += s.verdicts[packet.Truncated]
	w.FramesHidden += s.verdicts[packet.Hidden]
	w.FramesFragment += s.verdicts[packet.Fragment]
	w.FramesUnknownLink += s.warnings.FramesUnknownLink
	w.SegmentsFragmented += s.warnings.SegmentsFragmented
	w.FramesTunnelled += s.warnings.FramesTunnelled
	w.SegmentsOverlong += s.warnings.SegmentsOverlong
	w.TimestampsRepaired += s.repairs
	w.OptionsCut += s.warnings.OptionsCut
	w.OptionsMalformed += s.warnings.OptionsMalformed
}

// Close ends reading before the last packet.
func (s *Source) Close() {
	for _, in := range s.inputs {
		in.file.Close()
	}
	s.inputs = nil
}

// describe completes the row of the file.
func (in *input) describe() {
	in.row.Dropped, in.row.Interfaces = 0, []string{}
	for i, d := range in.file.Interfaces() {
		in.row.Dropped += int64(d.Dropped)
		switch {
		case !in.indexed(d):
			in.row.Interfaces = append(in.row.Interfaces, d.Name)
		case i < len(in.ifaces):
			in.row.Interfaces = append(in.row.Interfaces, in.ifaces[i].links.names...)
		}
	}
}
