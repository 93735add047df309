package ends

import (
	"cmp"
	"errors"

	"mplab/analysis/mptrace/internal/hist"
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/tables"
)

// Options of [Match]. Zero values stand for the defaults.
type Options struct {
	// SameClock: both captures were made by one clock, as in the virtual lab.
	SameClock bool
	// Samples is how many delays a direction of a subflow keeps at least before
	// every second is dropped; default 1000, −1: all.
	Samples int
	// WindowNS is how long an arrival is waited for; default 10 s.
	WindowNS int64
	// MaxInFlight is how many transmissions may be under way in a direction
	// before they are waited for less long; default 1<<16.
	MaxInFlight int
	// MaxFlows is how many flows are followed at a time; default 1<<15. More
	// are ignored and counted.
	MaxFlows int
	// Network names the network of an interface: wifi, cellular, …; nil: not known.
	Network func(iface string, f *tcp.Flow) string
	// Source says how captures are read.
	Source source.Options
}

func (o Options) filled() Options {
	o.Samples = cmp.Or(o.Samples, hist.DefaultLimit)
	o.WindowNS = cmp.Or(o.WindowNS, 10e9)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 1<<16)
	o.MaxFlows = cmp.Or(o.MaxFlows, 1<<15)
	return o
}

// Result is what two ends tell. Rows are in the order of connection, subflow,
// direction and time.
type Result struct {
	Clock        Clock
	Summary      Summary
	PathEnds     []PathEnds
	OWD          []OWD
	Losses       []Loss
	Reordering   []Reordering
	Reinjections []Reinjection
	Phone, Proxy []tables.File
	Doubts       []string // why the captures may not be what they were said to be
}

// ErrSame means that a file was given for both ends.
var ErrSame = errors.New("the same file is given for both ends")

// ErrNothing means that the captures have no packet in common.
var ErrNothing = errors.New("no packet is in the captures of both ends: they are not of the same time and connections, or a proxy on the path splits TCP")

// Match compares the captures of the phone, one file per interface as a rule,
// with those of the proxy. Files that cannot be read, or not to their end, are
// told in the result. It returns ErrNothing when no packet is at both ends.
func Match(phone, proxy []string, o Options) (*Result, error) {
	var open [2]opener
	var told [2]func() []tables.File
	if err := apart(phone, proxy); err != nil {
		return nil, err
	}
	for end, names := range [2][]string{phone, proxy} {
		var err error
		if open[end], told[end], err = captures(names, o.Source); err != nil {
			return nil, err
		}
	}
	r, err := match(open, o, follow)
	if r != nil {
		r.Phone, r.Proxy = told[phoneEnd](), told[proxyEnd]()
	}
	return r, err
}

// match does the three passes.
func match(open [2]opener, o Options, with following) (*Result, error) {
	o = o.filled()
	var sketches [2]*sketch
	var name func(int32) string
	for end := range open {
		in := open[end]()
		sketches[end] = newSketch()
		sketches[end].read(in)
		if end == phoneEnd {
			name = in.iface
		}
		in.close()
	}
	r := &Result{}
	r.Summary.PacketsPhone, r.Summary.PacketsProxy = sketches[phoneEnd].count, sketches[proxyEnd].count
	known := meet(sketches[phoneEnd], sketches[proxyEnd], name)
	for _, s := range sketches { // of which the times are needed still
		s.packets.seen, s.syns.seen = nil, nil
	}
	if known.matched == 0 {
		return r, ErrNothing
	}
	if o.SameClock {
		known.coarse = line{start: known.coarse.start}
	}
	found := newTiming(o, known, sketches)
	pass(open, found.matcher)
	clock, at := found.result(o, name)
	r.Clock = clock
	m := newMeasure(o, known, sketches, at, found, r)
	m.pass(open, with)
	r.Doubts = r.doubts(known.swapped)
	return r, nil
}

// pass gives a matcher the packets of both ends.
func pass(open [2]opener, m *matcher) {
	var in [2]stream
	for end := range open {
		in[end] = open[end]()
		defer in[end].close()
	}
	m.run(in)
}
