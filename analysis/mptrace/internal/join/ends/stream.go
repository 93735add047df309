package ends

import (
	"errors"
	"slices"

	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// stream is the sequence of TCP packets of one end, in the order of time.
type stream interface {
	// next returns the next packet, or nil at the end. The packet is valid
	// until the next call.
	next() *packet.Packet
	// iface returns the name of an interface.
	iface(number int32) string
	close()
}

// opener opens the packets of one end from the start. Every call returns the
// same packets.
type opener func() stream

// files is a stream of packets from capture files.
type files struct {
	source  *source.Source
	block   source.Block
	run, at int // place of the next record
	packet  packet.Packet
}

// captures opens capture files. The returned function reports how much of them
// was read; call it after a stream has ended.
func captures(names []string, o source.Options) (opener, func() []tables.File, error) {
	if slices.Contains(names, "-") {
		return nil, nil, errors.New("captures of two ends are read three times: give files instead of standard input")
	}
	var last *source.Source
	open := func() stream {
		last = source.Open(names, o)
		return &files{source: last}
	}
	return open, func() []tables.File { return last.Files() }, nil
}

func (s *files) next() *packet.Packet {
	for {
		for ; s.run < len(s.block.Runs); s.run, s.at = s.run+1, 0 {
			for run := &s.block.Runs[s.run]; s.at < len(run.Records); {
				s.at++
				if s.source.Decode(run, &run.Records[s.at-1], &s.packet) {
					return &s.packet
				}
			}
		}
		if !s.source.Next(&s.block) {
			return nil
		}
		s.run, s.at = 0, 0
	}
}

func (s *files) iface(number int32) string { return s.source.Interface(number) }

func (s *files) close() { s.source.Close() }
