package source

import (
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

// take decodes the records of an input up to a time into a block, until the
// block is full.
func (s *Source) take(in *input, until int64, b *Block) {
	packets, records := b.Packets[:blockSize], in.records
	had, at := len(b.Packets), in.at
	n := had
	from := s.iface(in, records[at].Iface)
	for ; at < len(records) && n < blockSize; at++ {
		r := &records[at]
		if r.TimeNS > until {
			break
		}
		if r.Iface != from.inFile {
			from = s.iface(in, r.Iface)
		}
		p := &packets[n]
		verdict := packet.Decode(from.link, r.Data, int(r.OrigLen), p)
		if verdict != packet.TCP {
			s.other(from, verdict, r.Data)
			if verdict == packet.Other && s.options.Answers {
				s.answer(b, in, from.link, r, n)
			}
			continue
		}
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
		n++
	}
	if in.at, b.Packets = at, packets[:n]; at < len(records) {
		in.head = records[at].TimeNS
	}
	in.row.TCP += int64(n - had)
	if n > had {
		s.hold(b, in.batch)
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

// other counts a frame without a TCP segment.
func (s *Source) other(from *iface, verdict packet.Verdict, frame []byte) {
	switch {
	case !from.known:
		s.warnings.FramesUnknownLink++
	case verdict == packet.Other && packet.Tunnelled(from.link, frame):
		s.warnings.FramesTunnelled++
	default:
		s.verdicts[verdict]++
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
// names. It is complete when Next has returned false.
func (s *Source) Files() []tables.File { return s.rows }

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
	w.TimestampsRepaired += s.warnings.TimestampsRepaired
	w.OptionsCut += s.warnings.OptionsCut
	w.OptionsMalformed += s.warnings.OptionsMalformed
}

// Close ends reading before the last packet.
func (s *Source) Close() {
	for _, in := range s.inputs {
		in.describe()
		in.file.Close()
	}
	s.inputs = nil
}

// describe completes the row of the file.
func (in *input) describe() {
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
