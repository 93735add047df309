package ends

import (
	"cmp"
	"errors"

	"mplab/analysis/mptrace/internal/hist"
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/tables"
)

// Options of [Match]. Zero values select the defaults.
type Options struct {
	// SameClock: both captures use the same clock, as in the virtual lab.
	SameClock bool
	// Samples is the minimum number of delays that a direction of a subflow
	// keeps before every second one is dropped; default 1000, −1: all.
	Samples int
	// WindowNS is how long to wait for an arrival; default 10 s.
	WindowNS int64
	// MaxInFlight is the maximum number of transmissions in flight per
	// direction; above it, the wait is shorter. Default 1<<16.
	MaxInFlight int
	// MaxFlows is the maximum number of concurrent flows; default 1<<15.
	// Packets of more flows are ignored and counted.
	MaxFlows int
	// Network returns the network of an interface: wifi, cellular, …; nil:
	// unknown.
	Network func(iface string, f *tcp.Flow) string
	// Source selects how captures are read.
	Source source.Options
}

func (o Options) filled() Options {
	o.Samples = cmp.Or(o.Samples, hist.DefaultLimit)
	o.WindowNS = cmp.Or(o.WindowNS, 10e9)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 1<<16)
	o.MaxFlows = cmp.Or(o.MaxFlows, 1<<15)
	return o
}

// Result is the comparison of two ends. Rows are sorted by connection, subflow,
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
	Doubts       []string // reasons to doubt that the captures belong to the given ends
}

// ErrSame means that a file was given for both ends.
var ErrSame = errors.New("the same file is given for both ends")

// ErrNothing means that the two captures have no packet in common.
var ErrNothing = errors.New("no packet is in the captures of both ends: they are not of the same time and connections, or a proxy on the path splits TCP")

// Match compares the captures of the phone, usually one file per interface,
// with those of the proxy. Result lists files that could not be read or not to
// their end. Match returns ErrNothing if no packet is in the captures of both
// ends.
func Match(phone, proxy []string, o Options) (*Result, error) {
	var open [2]opener
	var files [2]func() []tables.File
	if err := apart(phone, proxy); err != nil {
		return nil, err
	}
	for end, names := range [2][]string{phone, proxy} {
		var err error
		if open[end], files[end], err = captures(names, o.Source); err != nil {
			return nil, err
		}
	}
	r, err := match(open, o, follow)
	if r != nil {
		r.Phone, r.Proxy = files[phoneEnd](), files[proxyEnd]()
	}
	return r, err
}

// match runs the three passes.
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
	for _, s := range sketches { // only their times are still needed
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

// pass feeds the packets of both ends to a matcher.
func pass(open [2]opener, m *matcher) {
	var in [2]stream
	for end := range open {
		in[end] = open[end]()
		defer in[end].close()
	}
	m.run(in)
}
