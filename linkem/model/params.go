package model

import (
	"cmp"

	"mplab/linkem/internal/trace"
)

// Bounds of a queue.
const (
	DefaultQueueBytes = 150_000 // of a rate-limited direction whose queue is not given

	MinQueueBytes   = 1_500 // one full packet, or nothing would ever pass
	MaxQueueBytes   = maxHeldBytes
	MaxQueuePackets = 1_000_000
)

// Queue is the size of a queue, in IP bytes or in packets, and its discipline. The zero value is drop tail without a limit.
type Queue struct {
	Bytes      int     `json:"bytes,omitempty"`
	Packets    int     `json:"packets,omitempty"`
	Discipline string  `json:"discipline,omitempty"`  // DropTail if empty
	TargetMs   float64 `json:"target_ms,omitempty"`   // of CoDel
	IntervalMs float64 `json:"interval_ms,omitempty"` // of CoDel
}

// Managed says whether CoDel is at work.
func (q Queue) Managed() bool { return q.Discipline == Codel || q.Discipline == FqCodel }

// sameDiscipline says whether two queues differ at most in size.
func (q Queue) sameDiscipline(other Queue) bool {
	return q.Managed() == other.Managed() &&
		(!q.Managed() || q.Discipline == other.Discipline && q.TargetMs == other.TargetMs && q.IntervalMs == other.IntervalMs)
}

// Params are the conditions in one direction of a link. The zero value lets everything pass at once.
type Params struct {
	RateKbps    float64 `json:"rate_kbps"`    // of IP bytes; 0: unlimited
	DelayMs     float64 `json:"delay_ms"`     // one way
	JitterMs    float64 `json:"jitter_ms"`    // around DelayMs, never below no delay, never reordering
	LossPercent float64 `json:"loss_percent"` // of IP packets, independently of each other
	Queue       Queue   `json:"queue"`        // with a rate and no queue given: DefaultQueueBytes

	JitterDistribution string     `json:"jitter_distribution,omitempty"` // Uniform if empty
	LossModel          *LossModel `json:"loss_model,omitempty"`          // in place of LossPercent
	DuplicatePercent   float64    `json:"duplicate_percent,omitempty"`   // of IP packets that are not lost
	ReorderPercent     float64    `json:"reorder_percent,omitempty"`     // of IP packets: they skip delay and jitter
	Trace              string     `json:"trace,omitempty"`               // file of a packet-delivery trace, in place of RateKbps

	Opportunities *trace.Trace `json:"-"` // what Trace holds
}

// limited says whether anything ever waits.
func (p *Params) limited() bool { return p.RateKbps > 0 || p.Opportunities != nil }

// LossModel is that of Gilbert and Elliott: two states, each with a loss of its own, and a chance to change the state at
// each packet. It begins in the good one.
type LossModel struct {
	PPercent        float64 `json:"p_percent"`         // good → bad
	RPercent        float64 `json:"r_percent"`         // bad → good
	GoodLossPercent float64 `json:"good_loss_percent"` // 0 if not given
	BadLossPercent  float64 `json:"bad_loss_percent"`  // 100 if not given
}

// WithDefaults fills in what CoDel needs; with it, as on Linux, its queues have a limit in packets if none is given.
func (q Queue) WithDefaults() Queue {
	if !q.Managed() {
		return q
	}
	q.TargetMs = cmp.Or(q.TargetMs, DefaultTargetMs)
	q.IntervalMs = cmp.Or(q.IntervalMs, DefaultIntervalMs)
	if q.Bytes == 0 && q.Packets == 0 {
		q.Packets = DefaultCodelPackets
		if q.Discipline == FqCodel {
			q.Packets = DefaultFqCodelPackets
		}
	}
	return q
}

// WithDefaults fills in the queue of a rate-limited direction that has none.
func (p Params) WithDefaults() Params {
	if p.limited() && p.Queue.Bytes == 0 && p.Queue.Packets == 0 {
		p.Queue.Bytes = DefaultQueueBytes
	}
	return p
}
