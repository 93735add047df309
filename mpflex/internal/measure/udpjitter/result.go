package udpjitter

import (
	"net/netip"
	"sync"
	"time"
)

// Result is the result of a measurement. Times are in ms unless their names say
// otherwise.
type Result struct {
	Target   netip.AddrPort `json:"target"`
	Socks    string         `json:"socks"` // "": without a SOCKS server
	Size     int            `json:"size_bytes"`
	PeriodMs float64        `json:"period_ms"`
	Duration float64        `json:"duration_s"` // of sending

	Sent       int           `json:"sent"`        // probes that the system accepted
	SendErrors int           `json:"send_errors"` // probes that the system refused; not included in Sent
	LateMs     *Distribution `json:"late_ms"`     // delay between the planned and the actual time of sending
	Answered   int           `json:"answered"`

	// Certain means that the server reported its totals after the run. Otherwise Up
	// includes only probes up to the last one that was answered.
	Certain bool      `json:"certain"`
	Up      Direction `json:"up"`
	Down    Direction `json:"down"`

	RTT            *Distribution `json:"rtt_ms"`             // includes the server's processing time
	RTTPercentiles []float64     `json:"rtt_percentiles_ms"` // 0th to 100th

	// Gaps are the times without an answer, including the one before the first answer
	// and the one until the end of sending.
	GapMs      float64 `json:"gap_ms"` // minimum silence that counts as a gap
	GapCount   int     `json:"gap_count"`
	LongestGap float64 `json:"longest_gap_ms"` // of all silences, also shorter ones
	Gaps       []Gap   `json:"gaps"`           // the first maxGaps
}

// Direction counts the datagrams to the server, or back.
type Direction struct {
	Sent        int     `json:"sent"`
	Arrived     int     `json:"arrived"` // without duplicates
	Lost        int     `json:"lost"`
	LostPercent float64 `json:"lost_percent"`
	Duplicates  int     `json:"duplicates"`
	// Reordered datagrams arrived after one that was sent later (RFC 4737 §3.3).
	Reordered        int     `json:"reordered"`
	ReorderedPercent float64 `json:"reordered_percent"` // of Arrived
	JitterMs         float64 `json:"jitter_ms"`         // RFC 3550 §6.4.1, at the end of the run
	// Variation is the one-way delay minus its minimum (RFC 5481 §4.2), of the answered
	// probes. Its stdev is that of the delay.
	Variation *Distribution `json:"delay_variation_ms"`
	// LeastMs is the minimum one-way delay by the clocks of both ends. It is right only
	// if these agree, as on one machine.
	LeastMs *float64 `json:"least_delay_ms"`
	// Held is how long a receiver that needs the datagrams in order would hold each one
	// back to wait for earlier ones (the "late time" of RFC 4737 §4.3, seen from the
	// other side). It is 0 for most. The receiver does not wait for lost datagrams.
	Held *Distribution `json:"reordering_delay_ms"`
}

// Gap is a time without an answer.
type Gap struct {
	AtS        float64 `json:"at_s"` // since the first probe
	DurationMs float64 `json:"duration_ms"`
}

// maxGaps bounds the list of gaps.
const maxGaps = 1000

// collector collects answers. It is safe for concurrent use.
type collector struct {
	gap      time.Duration
	complete chan struct{} // closed when all probes are answered

	mu       sync.Mutex // guards the fields below
	expected int        // number of probes sent; -1 during sending
	down     receiver
	last     message // answer with the highest order
	up, back []journey
	rtt      []int64 // round-trip times, ns

	began, moved time.Time // the first probe; the last answer
	gaps         []Gap
	gapCount     int
	longest      time.Duration
}

func newCollector(gap time.Duration) *collector {
	return &collector{gap: gap, complete: make(chan struct{}), expected: -1}
}

// begin sets the time of the first probe.
func (c *collector) begin(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began, c.moved = at, at
}

// expect sets the number of probes sent.
func (c *collector) expect(probes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected = probes
	if len(c.rtt) >= probes {
		close(c.complete)
	}
}

// take processes an answer that arrived now, which is ns on the client's clock.
func (c *collector) take(m message, now time.Time, ns int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.order == 0 || m.order > maxProbes || !c.down.take(m.order-1, m.arrived, ns) {
		return
	}
	if m.order > c.last.order {
		c.last = m
	}
	c.up = append(c.up, journey{m.sequence, m.sent, m.arrived})
	c.back = append(c.back, journey{m.order - 1, m.arrived, ns})
	c.rtt = append(c.rtt, ns-m.sent)
	c.silence(now)
	if len(c.rtt) == c.expected {
		close(c.complete)
	}
}

// silence evaluates the time since the last answer.
func (c *collector) silence(now time.Time) {
	silent := now.Sub(c.moved)
	c.longest = max(c.longest, silent)
	if silent >= c.gap {
		if c.gapCount++; len(c.gaps) < maxGaps {
			c.gaps = append(c.gaps, Gap{AtS: seconds(c.moved.Sub(c.began)), DurationMs: inMs(silent)})
		}
	}
	c.moved = now
}

// result computes the result. ended is the time after the last probe.
func (c *client) result(totals message, certain bool, ended time.Time) Result {
	k := c.collector
	k.mu.Lock()
	defer k.mu.Unlock()
	if ended.After(k.moved) {
		k.silence(ended)
	}
	if k.last.order > totals.order { // the totals are missing, or a probe arrived after them
		totals = k.last
	}
	r := Result{
		Target: c.options.Target, Size: c.options.Size,
		PeriodMs: inMs(c.options.Period), Duration: seconds(ended.Sub(k.began)),
		Sent: c.sent - c.failed, SendErrors: c.failed, LateMs: newDistribution(c.late),
		Answered: len(k.rtt), Certain: certain,
		GapMs: inMs(k.gap), GapCount: k.gapCount, LongestGap: inMs(k.longest), Gaps: k.gaps,
	}
	if c.options.Socks.IsValid() {
		r.Socks = c.options.Socks.String()
	}
	r.Up = newDirection(r.Sent, int(totals.order), int(totals.reordered), int(totals.duplicates), totals.jitter, k.up)
	r.Down = newDirection(int(totals.order), len(k.rtt), int(k.down.reordered), int(k.down.duplicates), int64(k.down.jitterNs), k.back)
	r.RTT = newDistribution(k.rtt)
	r.RTTPercentiles = percentiles(k.rtt)
	if r.Gaps == nil {
		r.Gaps = []Gap{}
	}
	return r
}

func newDirection(sent, arrived, reordered, duplicates int, jitterNs int64, journeys []journey) Direction {
	delays := delaysOf(journeys)
	return Direction{
		Sent: sent, Arrived: arrived, Lost: sent - arrived, LostPercent: percent(sent-arrived, sent),
		Duplicates: duplicates, Reordered: reordered, ReorderedPercent: percent(reordered, arrived),
		JitterMs: milliseconds(float64(jitterNs)), Variation: newVariation(delays),
		LeastMs: least(delays), Held: newDistribution(heldOf(journeys)),
	}
}
