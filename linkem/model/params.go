package model

import (
	"cmp"

	"mplab/linkem/internal/trace"
)

// Bounds of a queue.
const (
	DefaultQueueBytes = 150_000 // default of a rate-limited direction

	MinQueueBytes   = 1_500 // one full packet; with less, no packet could pass
	MaxQueueBytes   = maxHeldBytes
	MaxQueuePackets = 1_000_000
)

// Queue is the size of a queue, in IP bytes or in packets, and its discipline. The zero value is drop tail without a
// limit.
type Queue struct {
	Bytes      int     `json:"bytes,omitempty"`
	Packets    int     `json:"packets,omitempty"`
	Discipline string  `json:"discipline,omitempty"`  // DropTail if empty
	TargetMs   float64 `json:"target_ms,omitempty"`   // of CoDel
	IntervalMs float64 `json:"interval_ms,omitempty"` // of CoDel
}

// Managed reports whether the queue uses CoDel.
func (q Queue) Managed() bool { return q.Discipline == Codel || q.Discipline == FqCodel }

// sameDiscipline reports whether two queues differ at most in size.
func (q Queue) sameDiscipline(other Queue) bool {
	return q.Managed() == other.Managed() &&
		(!q.Managed() || q.Discipline == other.Discipline && q.TargetMs == other.TargetMs && q.IntervalMs == other.IntervalMs)
}

// Params are the conditions of one direction of a link. The zero value passes every packet immediately.
type Params struct {
	RateKbps    float64 `json:"rate_kbps"`    // of IP bytes; 0: unlimited
	DelayMs     float64 `json:"delay_ms"`     // one way
	JitterMs    float64 `json:"jitter_ms"`    // around DelayMs, never negative, never reordering
	LossPercent float64 `json:"loss_percent"` // of IP packets, independent of each other
	Queue       Queue   `json:"queue"`        // default with a rate: DefaultQueueBytes

	JitterDistribution string     `json:"jitter_distribution,omitempty"` // Uniform if empty
	LossModel          *LossModel `json:"loss_model,omitempty"`          // replaces LossPercent
	DuplicatePercent   float64    `json:"duplicate_percent,omitempty"`   // of IP packets that are not lost
	ReorderPercent     float64    `json:"reorder_percent,omitempty"`     // of IP packets: they skip delay and jitter
	Middlebox          string     `json:"middlebox,omitempty"`           // changes packets before the queue; none if empty
	Trace              string     `json:"trace,omitempty"`               // trace file, replaces RateKbps

	Opportunities *trace.Trace `json:"-"` // content of Trace
}

// limited reports whether packets can wait.
func (p *Params) limited() bool { return p.RateKbps > 0 || p.Opportunities != nil }

// LossModel is the Gilbert-Elliott model: two states, each with a separate loss rate, and a probability to change the
// state at each packet. It starts in the good state.
type LossModel struct {
	PPercent        float64 `json:"p_percent"`         // good → bad
	RPercent        float64 `json:"r_percent"`         // bad → good
	GoodLossPercent float64 `json:"good_loss_percent"` // 0 if not given
	BadLossPercent  float64 `json:"bad_loss_percent"`  // 100 if not given
}

// WithDefaults sets the defaults of CoDel. As on Linux, a CoDel queue without a limit gets a limit in packets.
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

// WithDefaults sets the queue size of a rate-limited direction without one.
func (p Params) WithDefaults() Params {
	if p.limited() && p.Queue.Bytes == 0 && p.Queue.Packets == 0 {
		p.Queue.Bytes = DefaultQueueBytes
	}
	return p
}
