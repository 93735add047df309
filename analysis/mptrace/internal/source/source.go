package source

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Options of a [Source].
type Options struct {
	// IfNames maps interface indexes of the captured machine to names, for
	// captures of all interfaces (Linux cooked mode 2).
	IfNames map[uint32]string
	// Tunnels decodes the packets in tunnels, at one level.
	Tunnels bool
	// Rewrite is called for each segment, with its time and interface set; nil:
	// none.
	Rewrite func(*packet.Packet)
	// Answer is called for each completely captured UDP datagram from port 53,
	// which may not be valid DNS; nil: none.
	Answer func(message []byte, timeNS int64)
}

// Source is a sequence of captured frames. Its methods must not be called
// concurrently, with two exceptions: Interface, and Decode for one block at a
// time while Next fills another one.
type Source struct {
	options Options
	rows    []tables.File
	opened  []*input
	inputs  []*input // not yet at their end, in the order of begin
	names   names
	free    []*batch
	fills   int64 // number of calls of Next
	repairs int64 // number of repaired time stamps

	// Of Decode:
	verdicts [packet.Verdicts]int64
	warnings tables.Warnings // without the verdicts
}

const (
	blockSize = 2048 // in records: with fewer, threads wait for each other
	// A block that is not full is also handed over when its packets use this
	// many batches more than there are files.
	moreBatches = 4
	// readAhead bounds the bytes read at once, over all files.
	readAhead = 2 << 20
	minRead   = 16 << 10
	maxRead   = 128 << 10
)

// Block is a batch of consecutive records. They, and the bytes they point to,
// are valid until the block is filled again. The zero value is ready for use.
type Block struct {
	Runs    []Run
	records int      // in all runs
	batches []*batch // batches that the records point into
}

// Run is a sequence of consecutive records of one file.
type Run struct {
	Records []capfile.Record
	row     *tables.File
	ifaces  []*iface // by number in the file
}

// batch is a batch of a file; it is kept while its input or a block needs it.
type batch struct {
	capfile.Batch
	users int
	fill  int64 // number of the last Next that used it
}

// Open opens captures; the name "-" means standard input. [Source.Files]
// reports files that cannot be opened or are given twice.
func Open(names []string, o Options) *Source {
	s := &Source{options: o, rows: make([]tables.File, len(names))}
	var infos []os.FileInfo
	for i, name := range names {
		row := &s.rows[i]
		row.Name, row.Interfaces = name, []string{}
		info := stat(name)
		file, err := (*capfile.File)(nil), given(name, info, names[:i], infos)
		if infos = append(infos, info); err == nil {
			file, err = capfile.Open(name)
		}
		if err != nil {
			row.Partial, row.Error = true, err.Error()
			continue
		}
		row.Format = file.Format
		s.inputs = append(s.inputs, &input{file: file, row: row})
	}
	s.opened = slices.Clone(s.inputs)
	size := min(max(readAhead/max(len(s.inputs), 1), minRead), maxRead)
	for _, in := range s.inputs {
		in.size = size
	}
	return s
}

func stat(name string) os.FileInfo {
	if name == "-" {
		info, _ := os.Stdin.Stat()
		return info
	}
	info, _ := os.Stat(name)
	return info
}

// given returns an error if the same file was given before, under any name.
func given(name string, info os.FileInfo, names []string, infos []os.FileInfo) error {
	for i, before := range names {
		if name == before || (info != nil && infos[i] != nil && os.SameFile(info, infos[i])) {
			return fmt.Errorf("the same file as %s", before)
		}
	}
	return nil
}

// Next fills a block with at least one record. After the last one, it returns
// false and an empty block.
func (s *Source) Next(b *Block) bool {
	s.release(b)
	if s.fills == 0 {
		s.begin()
	}
	s.fills++
	for b.records < blockSize && len(b.batches) < len(s.inputs)+moreBatches {
		in, until := s.earliest()
		if in == nil {
			break
		}
		s.take(in, until, b)
	}
	return b.records > 0
}

// begin reads the start of all files and sorts them by interface and first
// record. So the order of the given names does not matter if times are equal.
func (s *Source) begin() {
	s.inputs = slices.DeleteFunc(s.inputs, func(in *input) bool { return !s.read(in) })
	slices.SortStableFunc(s.inputs, func(a, b *input) int {
		return cmp.Or(cmp.Compare(a.firstInterface(), b.firstInterface()), cmp.Compare(a.head, b.head),
			bytes.Compare(a.records[0].Data, b.records[0].Data))
	})
}

// release releases the batches that a block holds.
func (s *Source) release(b *Block) {
	for _, batch := range b.batches {
		s.drop(batch)
	}
	b.Runs, b.records, b.batches = b.Runs[:0], 0, b.batches[:0]
}

func (s *Source) drop(held *batch) {
	if held.users--; held.users == 0 {
		s.free = append(s.free, held)
	}
}

// earliest returns the input with the earliest next record, and the time up to
// which its records precede those of all other inputs. For equal times, the
// first input in the order of begin comes first.
func (s *Source) earliest() (first *input, until int64) {
	until = math.MaxInt64
	for i := 0; i < len(s.inputs); i++ {
		in := s.inputs[i]
		if in.at == len(in.records) && !s.read(in) {
			s.inputs = append(s.inputs[:i], s.inputs[i+1:]...)
			i--
			continue
		}
		switch {
		case first == nil:
			first = in
		case in.head < first.head:
			until, first = first.head-1, in
		default:
			until = min(until, in.head)
		}
	}
	return first, until
}

// read reads the next batch of an input. At the end of the file it closes the
// input and returns false.
func (s *Source) read(in *input) bool {
	if in.batch != nil {
		s.drop(in.batch)
		in.batch = nil
	}
	if in.err == nil {
		batch := s.newBatch(in.size)
		in.err = in.file.Read(&batch.Batch)
		in.batch, in.records, in.at = batch, batch.Records, 0
		s.repairs += in.repair()
		s.meet(in)
		in.row.Packets += int64(len(in.records))
		if len(in.records) > 0 {
			in.head = in.records[0].TimeNS
			return true
		}
		s.drop(batch)
		in.batch = nil
	}
	if in.err != io.EOF {
		in.row.Partial, in.row.Error = true, fmt.Sprintf("%v after packet %d", in.err, in.row.Packets)
	}
	in.file.Close()
	return false
}

func (s *Source) newBatch(size int) *batch {
	if n := len(s.free); n > 0 {
		batch := s.free[n-1]
		s.free = s.free[:n-1]
		batch.users = 1
		return batch
	}
	return &batch{Batch: capfile.Batch{Size: size}, users: 1}
}
