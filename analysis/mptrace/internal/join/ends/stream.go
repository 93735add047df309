package ends

import (
	"errors"
	"slices"

	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// stream is the TCP packets of one end, in the order of time.
type stream interface {
	// next returns the next packet, valid until the one after it; nil at the end.
	next() *packet.Packet
	// iface is the name of an interface number.
	iface(number int32) string
	close()
}

// opener opens the packets of one end from their beginning; each time they
// are the same.
type opener func() stream

// files is a stream from capture files.
type files struct {
	source *source.Source
	block  source.Block
	at     int
}

// captures opens capture files. The function tells what was read of them,
// when a stream has come to its end.
func captures(names []string, o source.Options) (opener, func() []tables.File, error) {
	if slices.Contains(names, "-") {
		return nil, nil, errors.New("captures of two ends are read three times: standard input cannot be")
	}
	var last *source.Source
	open := func() stream {
		last = source.Open(names, o)
		return &files{source: last}
	}
	return open, func() []tables.File { return last.Files() }, nil
}

func (s *files) next() *packet.Packet {
	if s.at == len(s.block.Packets) {
		if !s.source.Next(&s.block) {
			return nil
		}
		s.at = 0
	}
	s.at++
	return &s.block.Packets[s.at-1]
}

func (s *files) iface(number int32) string { return s.source.Interface(number) }

func (s *files) close() { s.source.Close() }
