package record

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"mplab/linkem/internal/trace"
)

// Directions, from the view of the side that opened the flow.
const (
	Down = "down" // to it
	Up   = "up"   // from it
)

// Options select the part of a capture to use.
type Options struct {
	Direction string
	Skip      time.Duration // after the first full-size packet
	Duration  time.Duration // 0: to the end
}

// Result is a recorded trace and a description of its source.
type Result struct {
	Trace    *trace.Trace
	From, To netip.Addr
	Flow     string // the busiest flow, such as "TCP 10.0.0.1:80 → 10.0.0.2:4711"
	MTU      int    // size of full packets, IP bytes
	Full     int    // number of full-size packets, each an opportunity
	Small    int    // number of packets that are no opportunity
	Bundles  int    // packets merged by receive offload: each counts as several opportunities
	Cut      bool   // the capture ends inside a record
}

// fullShare is the minimum size of a full-size packet relative to the largest packet: TCP options differ between
// packets.
const fullShare = 0.9

// Capture reads a capture made where the packets arrived. It uses the flow with the most bytes in the given direction,
// and all other TCP and UDP packets in the same direction between the same two addresses, because several connections
// may saturate the path together.
func Capture(file string, options Options) (Result, error) {
	packets, cut, err := read(file)
	if err != nil {
		return Result{}, err
	}
	result, err := build(packets, options)
	result.Cut = cut
	if err != nil {
		return result, fmt.Errorf("%s: %w", file, err)
	}
	return result, nil
}

func build(all []seen, options Options) (Result, error) {
	busiest, err := busiest(all, options.Direction)
	if err != nil {
		return Result{}, err
	}
	result := Result{From: busiest.source.Addr(), To: busiest.target.Addr(), Flow: busiest.String()}
	var packets []seen
	for _, p := range all {
		if p.iface == busiest.iface && p.source.Addr() == result.From && p.target.Addr() == result.To {
			packets = append(packets, p)
		}
	}
	slices.SortStableFunc(packets, func(a, b seen) int { return cmp.Compare(a.timeNS, b.timeNS) })
	result.MTU = fullSize(packets)

	var ms []uint32
	begin, end := int64(math.MinInt64), int64(math.MaxInt64)
	for _, p := range packets {
		count := opportunities(p.bytes, result.MTU)
		if begin == math.MinInt64 && count > 0 {
			// The first packet only marks the start. Counting it would make the rate too high.
			begin = p.timeNS + int64(options.Skip)
			if options.Duration > 0 {
				end = begin + int64(options.Duration)
			}
		}
		if p.timeNS <= begin || p.timeNS > end {
			continue
		}
		switch {
		case count == 0:
			result.Small++
			continue
		case count > 1:
			result.Bundles++
		}
		result.Full += count
		after := (p.timeNS - begin + int64(time.Millisecond) - 1) / int64(time.Millisecond)
		for range count {
			ms = append(ms, uint32(min(after, trace.LongestMs+1)))
		}
	}
	if len(ms) == 0 {
		return result, fmt.Errorf("%s has no packets of full size (%d bytes) in the requested time", result.Flow, result.MTU)
	}
	result.Trace, err = trace.New(ms)
	return result, err
}

// opportunities returns the number of full-size packets in a captured packet.
func opportunities(bytes, full int) int {
	if bytes > trace.MTU {
		return int(math.Round(float64(bytes) / float64(full)))
	}
	if float64(bytes) >= fullShare*float64(full) {
		return 1
	}
	return 0
}

// fullSize returns the size of the largest packets that are not merged by receive offload.
func fullSize(packets []seen) int {
	size := 0
	for _, p := range packets {
		if p.bytes <= trace.MTU {
			size = max(size, p.bytes)
		}
	}
	if largest := slices.MaxFunc(packets, func(a, b seen) int { return cmp.Compare(a.bytes, b.bytes) }); largest.bytes > trace.MTU && size < trace.MTU/2 {
		return trace.MTU // only merged packets and acknowledgements
	}
	return size
}

// way is one direction of a flow on an interface of the capture.
type way struct {
	iface          int32
	protocol       byte
	source, target netip.AddrPort
}

func (w way) reverse() way { return way{w.iface, w.protocol, w.target, w.source} }

func (w way) String() string {
	name := "TCP"
	if w.protocol == protocolUDP {
		name = "UDP"
	}
	return fmt.Sprintf("%s %s → %s", name, w.source, w.target)
}

// busiest returns the way with the most bytes in the given direction; among equals, the first.
func busiest(packets []seen, direction string) (way, error) {
	bytes := map[way]int{}
	opener := map[way]bool{} // whether the sender of the way opened the flow
	var order []way
	for _, p := range packets {
		w := way{p.iface, p.protocol, p.source, p.target}
		if _, known := opener[w]; !known {
			opener[w], opener[w.reverse()] = true, false
			order = append(order, w, w.reverse())
		}
		if p.opens || p.isOpened {
			opener[w], opener[w.reverse()] = p.opens, p.isOpened
		}
		bytes[w] += p.bytes
	}
	var best way
	for _, w := range order {
		if opener[w] == (direction == Up) && bytes[w] > bytes[best] {
			best = w
		}
	}
	if bytes[best] == 0 {
		return best, errors.New("no TCP or UDP packets go " + direction)
	}
	return best, nil
}

// Origin returns the origin of the trace.
func (r Result) Origin(capture string, options Options) trace.Origin {
	span := "to the end"
	if options.Duration > 0 {
		span = fmt.Sprintf("for %g s", options.Duration.Seconds())
	}
	return trace.Origin{
		Title: fmt.Sprintf("Recorded %sstream", options.Direction),
		Source: fmt.Sprintf("%s: %s, packets of %d bytes, from %g s after the first one %s; method of deng2014 §5",
			filepath.Base(capture), r.Flow, r.MTU, options.Skip.Seconds(), span),
	}
}
