package model

import (
	"math"

	"mplab/linkem/internal/trace"
)

// serialiser is what serialises the packets of a direction, one at a time: at a rate, or at the opportunities of a trace.
type serialiser interface {
	// ready gives the first time at which the server can begin with a packet that is there at the time t, or later.
	ready(t int64) int64
	// serve gives the time at which so many bytes are serialised that it begins with at the time start, which ready gave.
	serve(start int64, bytes float64) int64
	// cost is what a packet of so many IP bytes takes, in bytes.
	cost(bytes int) float64
	// remaining gives the bytes of the packet in service, which ends at the time end, that are not serialised by now.
	remaining(now, end int64) float64
}

// rateServer serialises at a constant rate. The zero value does so at once.
type rateServer struct {
	nsPerByte float64
	free      int64 // when the last packet was serialised
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

// traceServer delivers at the opportunities of a trace, as Mahimahi's link shell does: each can deliver OpportunityBytes
// of the packets that wait at that time; what it does not use is lost; what a packet lacks it gets from the next ones.
type traceServer struct {
	trace *trace.Trace
	base  int64 // when this repetition of the trace began, ns
	index int   // of the current opportunity
	left  int64 // bytes that it can still deliver
}

const nsPerMs = int64(1e6)

// newTraceServer begins the trace at the time begin.
func newTraceServer(t *trace.Trace, begin int64) *traceServer {
	return &traceServer{trace: t, base: begin, left: trace.OpportunityBytes}
}

// at gives the time of the current opportunity.
func (s *traceServer) at() int64 { return s.base + int64(s.trace.At(s.index))*nsPerMs }

func (s *traceServer) length() int64 { return int64(s.trace.LengthMs()) * nsPerMs }

// step goes on to the next opportunity.
func (s *traceServer) step() {
	s.left = trace.OpportunityBytes
	if s.index++; s.index == s.trace.Len() {
		s.index = 0
		s.base += s.length()
	}
}

func (s *traceServer) ready(t int64) int64 {
	if idle := (t - s.base) / s.length(); idle > 1 && s.at() < t { // whole repetitions that nobody used
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

// remaining counts the opportunities after now, back from the one that ends the packet.
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

// newServer makes the server of the conditions; a trace begins at the time begin.
func newServer(params *Params, begin int64) serialiser {
	switch {
	case params.Opportunities != nil:
		return newTraceServer(params.Opportunities, begin)
	case params.RateKbps > 0:
		return &rateServer{nsPerByte: 8e6 / params.RateKbps, free: math.MinInt64}
	}
	return &rateServer{free: math.MinInt64}
}
