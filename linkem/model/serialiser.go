package model

import (
	"math"

	"mplab/linkem/internal/trace"
)

// serialiser serialises the packets of a direction, one at a time: at a rate, or at the opportunities of a trace.
type serialiser interface {
	// ready returns the first time, at t or later, when the server can start with a packet that is present at t.
	ready(t int64) int64
	// serve returns the time when the bytes are serialised. start is the start of service, as returned by ready.
	serve(start int64, bytes float64) int64
	// cost returns the bytes that a packet of the given IP bytes occupies.
	cost(bytes int) float64
	// remaining returns the bytes of the packet in service, which ends at the time end, that are not serialised at now.
	remaining(now, end int64) float64
}

// rateServer serialises at a constant rate. The zero value serialises immediately.
type rateServer struct {
	nsPerByte float64
	free      int64 // when the last packet is serialised
}

func (s *rateServer) ready(t int64) int64 { return max(t, s.free) }

func (s *rateServer) serve(start int64, bytes float64) int64 {
	s.free = start + int64(math.Round(bytes*s.nsPerByte))
	return s.free
}

func (s *rateServer) cost(bytes int) float64 { return float64(bytes) }

func (s *rateServer) remaining(now, end int64) float64 {
	if s.nsPerByte == 0 {
		return 0
	}
	return float64(end-now) / s.nsPerByte
}

// traceServer delivers at the opportunities of a trace, as Mahimahi's link shell does. Each opportunity can deliver
// OpportunityBytes of the packets that wait at that time. Its unused bytes are lost. A packet that needs more continues
// at the next opportunity.
type traceServer struct {
	trace *trace.Trace
	base  int64 // start of this repetition of the trace, ns
	index int   // of the current opportunity
	left  int64 // bytes that it can still deliver
}

const nsPerMs = int64(1e6)

// newTraceServer starts the trace at the time begin.
func newTraceServer(t *trace.Trace, begin int64) *traceServer {
	return &traceServer{trace: t, base: begin, left: trace.OpportunityBytes}
}

// at returns the time of the current opportunity.
func (s *traceServer) at() int64 { return s.base + int64(s.trace.At(s.index))*nsPerMs }

func (s *traceServer) length() int64 { return int64(s.trace.LengthMs()) * nsPerMs }

// step moves to the next opportunity.
func (s *traceServer) step() {
	s.left = trace.OpportunityBytes
	if s.index++; s.index == s.trace.Len() {
		s.index = 0
		s.base += s.length()
	}
}

func (s *traceServer) ready(t int64) int64 {
	if idle := (t - s.base) / s.length(); idle > 1 && s.at() < t { // skip unused repetitions
		s.index, s.left = 0, trace.OpportunityBytes
		s.base += (idle - 1) * s.length()
	}
	for s.left == 0 || s.at() < t {
		s.step()
	}
	return s.at()
}

func (s *traceServer) serve(_ int64, bytes float64) int64 {
	for need := int64(math.Ceil(bytes)); ; s.step() {
		used := min(need, s.left)
		s.left -= used
		if need -= used; need == 0 {
			return s.at()
		}
	}
}

func (s *traceServer) cost(bytes int) float64 { return float64(bytes + trace.HeaderBytes) }

// remaining counts the opportunities after now, backwards from the one that ends the packet.
func (s *traceServer) remaining(now, _ int64) float64 {
	back := *s
	bytes := trace.OpportunityBytes - back.left
	for {
		if back.index--; back.index < 0 {
			back.index = back.trace.Len() - 1
			back.base -= back.length()
		}
		if back.at() <= now {
			return float64(bytes)
		}
		bytes += trace.OpportunityBytes
	}
}

// newServer returns the server for the conditions; a trace starts at the time begin.
func newServer(params *Params, begin int64) serialiser {
	switch {
	case params.Opportunities != nil:
		return newTraceServer(params.Opportunities, begin)
	case params.RateKbps > 0:
		return &rateServer{nsPerByte: 8e6 / params.RateKbps, free: math.MinInt64}
	}
	return &rateServer{free: math.MinInt64}
}
