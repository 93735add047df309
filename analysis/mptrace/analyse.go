package mptrace

import (
	"errors"
	"strings"

	"mplab/analysis/mptrace/internal/filter"
	"mplab/analysis/mptrace/internal/join/loopback"
	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/network"
	"mplab/analysis/mptrace/internal/observe/mptcptrace"
	"mplab/analysis/mptrace/internal/observe/sequence"
	"mplab/analysis/mptrace/internal/observe/xplot"
	"mplab/analysis/mptrace/internal/payload"
	"mplab/analysis/mptrace/internal/payload/proxied"
	"mplab/analysis/mptrace/internal/payload/tlskeys"
	"mplab/analysis/mptrace/internal/pipeline"
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Options select the additional inputs and the outputs of [Analyse]. The zero
// value yields only the list of files and the warnings.
type Options struct {
	Threads int // number of goroutines for the stages reading, TCP and connections: 1 to 3
	Samples int // see tcp.Options

	Source   source.Options
	Loopback *loopback.Options // undo transparent redirects; nil: leave them
	Network  *network.Rules    // nil: guess from interface names
	Filter   *filter.Filter    // analyse only segments that match; nil: all
	Log      *proxied.Log      // of the agent or the proxy; nil: none
	Keys     *tlskeys.Log      // TLS secrets; nil: none
	Table    *proxied.Table    // cipher of a ShadowSocks proxy; nil: none

	Directory string     // for Parquet files; "": none
	Tables    tables.Set // written to Directory; 0: all
	Keep      tables.Set // kept in the result
	KeepRows  int64      // maximum number of kept rows; more is tables.ErrRows; 0: no bound

	Summary *tables.Summary                            // receives the rows; nil: none
	ended   func(*tables.Connection, []tables.Subflow) // receives the connections; nil: none

	Xplot      string // directory for xplot files; "": none
	MPTCPTrace string // directory for the files of mptcptrace; "": none

	Stages *Stages // receives the time of the stages; nil: nobody wants it

	slow func() bool // of tests: whether the next packet must not take the fast path; nil: it may
}

// Analyse reads captures, merges them by time and returns their tables.
// Result.Files reports files that could not be read or not to their end; the
// packets before such an error are used. If no file was readable, no output is
// finished. Analyse returns an error only if an output cannot be written or a
// bound of Options is exceeded. A filter that names connections reads the files
// twice.
func Analyse(names []string, o Options) (*tables.Result, error) {
	flows, err := selectFlows(names, o)
	if err != nil {
		return nil, err
	}
	return analyse(names, o, flows)
}

// analyse processes the segments of some flows, or of all if flows is nil.
func analyse(names []string, o Options, flows *filter.Flows) (*tables.Result, error) {
	a := &analysis{flows: flows}
	if o.Filter != nil {
		a.gate = o.Filter.Gate(flows)
	}
	o.Source.Answer = a.answered
	in := source.Open(names, o.Source)
	defer in.Close()
	a.in, a.slow, a.fast = in, o.slow, o.Loopback == nil && o.Source.Rewrite == nil && o.Filter == nil
	if err := a.begin(names, o, in); err != nil {
		return nil, err
	}
	defer a.abort()
	read, track, follow, connect := func(b *block) bool { return in.Next(&b.Block) }, a.track, a.follow, a.connect
	if s := o.Stages; s != nil {
		read, track, follow, connect = timed(&s.Read, read), timed(&s.Follow, track), timed(&s.Follow, follow), timed(&s.Connect, connect)
	}
	if o.Threads < 2 {
		pipeline.Run(1, read, track)
	} else {
		pipeline.Run(o.Threads, read, follow, connect)
	}
	if err := a.failed(); err != nil {
		return nil, err
	}
	a.end()
	if a.finish != nil {
		a.finish()
	}
	if err := a.failed(); err != nil {
		return nil, err
	}
	a.warnings.FlowsEvicted += a.tracker.Evicted
	in.Warnings(&a.warnings)
	result := a.sink.Result(in.Files(), a.warnings)
	if o.Filter != nil {
		result.Filter = o.Filter.String()
	}
	result.FastPackets = a.fastPackets
	if Unreadable(result.Files) {
		return result, nil
	}
	if err := a.close(); err != nil {
		return result, err
	}
	if o.Directory == "" {
		return result, nil
	}
	return result, tables.WriteSources(o.Directory, result)
}

// Unreadable reports whether no packet of any file could be read.
func Unreadable(files []tables.File) bool {
	for _, f := range files {
		if !f.Partial || f.Packets > 0 {
			return false
		}
	}
	return true
}

// output is a set of files that an analysis writes.
type output interface {
	Err() error // the first error so far
	Close() error
}

// analysis holds what a packet passes: its flow, its connection, the rows.
type analysis struct {
	in   *source.Source
	fast bool        // no packet is changed before it is followed
	slow func() bool // see Options

	// Used by the stage follow:
	joiner  *loopback.Joiner // nil: none
	gate    *filter.Gate     // nil: all segments pass
	tracker *tcp.Tracker
	block   *block  // that is being followed; nil: packets are connected at once
	item    item    // the current packet, without a block
	decoded decoded // the same, if it did not take the fast path

	// Used by the stage connect:
	fastPackets int64   // packets that took the fast path as far as the engine
	again       decoded // a packet that took it only as far as the tracker

	flows    *filter.Flows // the only flows; nil: all
	engine   *mptcp.Engine
	reader   *payload.Reader
	sink     *tables.Sink
	written  *tables.ParquetSink // nil: none
	outputs  []output
	finish   func() // passes the last rows to Options.ended; nil: nobody wants them
	warnings tables.Warnings
}

func (a *analysis) begin(names []string, o Options, in *source.Source) error {
	if err := a.openTables(o); err != nil {
		return err
	}
	observer, err := a.observers(names, o)
	if err != nil {
		a.abort()
		return err
	}
	if o.Loopback != nil {
		a.joiner = loopback.New(*o.Loopback)
	}
	a.reader = payload.New(payload.Options{
		Keys: o.Keys, Log: o.Log, Table: o.Table, Objects: a.sink.Objects, Warnings: &a.warnings,
	})
	var number func(*packet.Packet) int32
	if a.flows != nil {
		number = a.flows.Number
	}
	a.engine = mptcp.New(mptcp.Options{
		Samples:    o.Samples,
		Number:     number,
		Interfaces: in.Interface,
		Network:    o.Network.OfFlow,
		Observer:   observer,
		Payload:    a.reader.For,
		Describe:   a.reader.Describe,
		Release:    func(f *tcp.Flow) { a.tracker.Release(f) },
	}, a.sink, &a.warnings)
	a.tracker = tcp.NewTracker(tcp.Options{Samples: o.Samples, OnEnd: a.flowEnded, OnRetransmission: a.sentAgain})
	return nil
}

func (a *analysis) openTables(o Options) error {
	if o.Directory == "" {
		a.sink = tables.NewMemorySink(o.Keep, o.KeepRows)
	} else {
		written, err := tables.NewParquetSink(o.Directory, tables.ParquetOptions{Tables: o.Tables, Keep: o.Keep, Most: o.KeepRows})
		if err != nil {
			return err
		}
		a.sink, a.written = written.Sink(), written
		a.outputs = append(a.outputs, written)
	}
	if o.Summary != nil {
		o.Summary.Watch(a.sink)
	}
	if o.ended != nil {
		a.finish = a.sink.Ended(o.ended)
	}
	return nil
}

func (a *analysis) observers(names []string, o Options) (mptcp.Observer, error) {
	var list mptcp.Observers
	if a.sink.Points != nil {
		list = append(list, sequence.New(o.Samples, a.sink.Points))
	}
	if o.Xplot != "" {
		w, err := xplot.New(o.Xplot)
		if err != nil {
			return nil, err
		}
		list, a.outputs = append(list, w), append(a.outputs, w)
	}
	if o.MPTCPTrace != "" {
		w, err := mptcptrace.New(o.MPTCPTrace, strings.Join(names, " "), &a.warnings)
		if err != nil {
			return nil, err
		}
		list, a.outputs = append(list, w), append(a.outputs, w)
	}
	switch len(list) {
	case 0:
		return nil, nil
	case 1:
		return list[0], nil
	}
	return list, nil
}

func (a *analysis) failed() error {
	if err := a.sink.Err(); err != nil {
		return err
	}
	for _, out := range a.outputs {
		if err := out.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (a *analysis) close() error {
	var errs []error
	for _, out := range a.outputs {
		errs = append(errs, out.Close())
	}
	return errors.Join(errs...)
}

// abort removes the tables that were not closed.
func (a *analysis) abort() {
	if a.written != nil {
		a.written.Abort()
	}
}
