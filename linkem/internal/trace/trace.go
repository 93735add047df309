package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

const (
	// OpportunityBytes is the size that one opportunity delivers: an IP packet of 1500 bytes with HeaderBytes.
	OpportunityBytes = 1504
	// HeaderBytes is the overhead per packet: Mahimahi's packets come from a TUN device, with 4 bytes of packet
	// information.
	HeaderBytes = 4
	// MTU is the IP bytes of a full-size packet.
	MTU = OpportunityBytes - HeaderBytes

	// LongestMs is the maximum time in a trace: a week.
	LongestMs = 7 * 24 * 3600 * 1000
	// MostLines is the maximum number of opportunities in a trace: two hours at 33 Mbit/s.
	MostLines = 20_000_000
)

// Trace is a packet-delivery trace. It is immutable.
type Trace struct {
	ms []uint32
}

// New returns a trace with opportunities at the given times in ms. Times must not decrease, and the last one must be
// above 0. The error contains the number of the first wrong one, counted from 1, like the lines of a file.
func New(ms []uint32) (*Trace, error) {
	if len(ms) == 0 {
		return nil, errors.New("no opportunities: a trace has at least one line")
	}
	for i := range ms {
		if i > 0 && ms[i] < ms[i-1] {
			return nil, fmt.Errorf("%d: %d ms come after %d ms; times must not decrease", i+1, ms[i], ms[i-1])
		}
		if ms[i] > LongestMs {
			return nil, fmt.Errorf("%d: %d ms are more than %d ms, a week", i+1, ms[i], LongestMs)
		}
	}
	if ms[len(ms)-1] == 0 {
		return nil, fmt.Errorf("%d: the last time is 0 ms, but it is the length of the trace and must be above 0", len(ms))
	}
	return &Trace{ms}, nil
}

// Len returns the number of opportunities.
func (t *Trace) Len() int { return len(t.ms) }

// At returns the time of an opportunity, in ms.
func (t *Trace) At(i int) uint32 { return t.ms[i] }

// LengthMs returns the time after which the trace repeats, in ms.
func (t *Trace) LengthMs() uint32 { return t.ms[len(t.ms)-1] }

// Load reads a file. An error contains file and line.
func Load(file string) (*Trace, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	if info, err := in.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file", file)
	}
	t, err := Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", file, err)
	}
	return t, nil
}

// Read reads a trace as strictly as Mahimahi does: only digits on each line. An error starts with the line number.
func Read(r io.Reader) (*Trace, error) {
	var ms []uint32
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		number := len(ms) + 1
		if number > MostLines {
			return nil, fmt.Errorf("%d: more than %d lines", number, MostLines)
		}
		at, err := parse(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%d: %w", number, err)
		}
		ms = append(ms, at)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%d: a line that is no number of milliseconds: is this a trace?", len(ms)+1)
	} else if err != nil {
		return nil, fmt.Errorf("%d: %w", len(ms)+1, err)
	}
	t, err := New(ms)
	if err != nil && len(ms) == 0 {
		return nil, fmt.Errorf("1: %w", err)
	}
	return t, err
}

// parse reads one line without its line end, which may include a carriage return.
func parse(line []byte) (uint32, error) {
	if len(line) == 0 {
		return 0, errors.New("an empty line; each has a whole number of milliseconds")
	}
	for _, c := range line {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%q is not a whole number of milliseconds", shorten(string(line)))
		}
	}
	at, err := strconv.ParseUint(string(line), 10, 64)
	if err != nil || at > LongestMs {
		return 0, fmt.Errorf("%s ms are more than %d ms, a week", shorten(string(line)), LongestMs)
	}
	return uint32(at), nil
}

func shorten(text string) string {
	const longest = 30
	if len(text) > longest {
		return text[:longest] + "…"
	}
	return text
}

// Write writes the trace, one line per opportunity.
func (t *Trace) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	var line []byte
	for _, at := range t.ms {
		line = append(strconv.AppendUint(line[:0], uint64(at), 10), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Bytes returns the trace in the form of a file.
func (t *Trace) Bytes() []byte {
	var b bytes.Buffer
	_ = t.Write(&b) // a buffer accepts every write
	return b.Bytes()
}

// Summary describes a trace. Rates are of IP bytes, in packets of MTU bytes.
type Summary struct {
	Opportunities int     `json:"opportunities" yaml:"opportunities"`
	Seconds       float64 `json:"seconds" yaml:"seconds"`
	MeanKbps      float64 `json:"mean_kbps" yaml:"mean_kbps"`
	LeastKbps     float64 `json:"least_kbps" yaml:"least_kbps"`         // per whole second; of a short trace: the mean
	MostKbps      float64 `json:"most_kbps" yaml:"most_kbps"`           // like LeastKbps
	LongestGapMs  uint32  `json:"longest_gap_ms" yaml:"longest_gap_ms"` // without an opportunity, repetition included
}

const bitsPerPacket = MTU * 8

// Summarise computes the summary of a trace.
func (t *Trace) Summarise() Summary {
	length := float64(t.LengthMs())
	s := Summary{Opportunities: t.Len(), Seconds: length / 1000, MeanKbps: math.Round(1000*bitsPerPacket*float64(t.Len())/length) / 1000}
	s.LeastKbps, s.MostKbps = s.MeanKbps, s.MeanKbps
	counts := make([]int, t.LengthMs()/1000)
	last := uint32(0) // end of the previous repetition
	for _, at := range t.ms {
		s.LongestGapMs = max(s.LongestGapMs, at-last)
		last = at
		if second := secondOf(at); second < len(counts) {
			counts[second]++
		}
	}
	for i, count := range counts {
		kbps := bitsPerPacket * float64(count) / 1000
		if i == 0 {
			s.LeastKbps, s.MostKbps = kbps, kbps
		}
		s.LeastKbps, s.MostKbps = min(s.LeastKbps, kbps), max(s.MostKbps, kbps)
	}
	return s
}

// secondOf returns the second that an opportunity belongs to. An opportunity stands for the time before it, so the one
// at 1000 ms belongs to the first second.
func secondOf(ms uint32) int {
	if ms == 0 {
		return 0
	}
	return int((ms - 1) / 1000)
}

func (s Summary) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d opportunities in %.3f s: %.0f kbit/s (seconds from %.0f to %.0f), at most %d ms without one",
		s.Opportunities, s.Seconds, s.MeanKbps, s.LeastKbps, s.MostKbps, s.LongestGapMs))
}
