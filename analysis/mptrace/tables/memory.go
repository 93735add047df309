package tables

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
)

// Result holds the tables of a set of captures. The rows of each table are
// sorted by connection number. Tables that were not kept are nil.
type Result struct {
	Schema          int              `json:"schema"`
	Connections     []Connection     `json:"connections"`
	Subflows        []Subflow        `json:"subflows"`
	Directions      []Direction      `json:"directions"`
	RTT             []RTT            `json:"rtt,omitempty"`
	Retransmissions []Retransmission `json:"retransmissions,omitempty"`
	Reinjections    []Reinjection    `json:"reinjections,omitempty"`
	Bursts          []Burst          `json:"bursts,omitempty"`
	Throughput      []Throughput     `json:"throughput,omitempty"`
	ACKSizes        []ACKSize        `json:"acks,omitempty"`
	Events          []Event          `json:"events,omitempty"`
	Points          []Point          `json:"points,omitempty"`
	Objects         []Object         `json:"objects,omitempty"`
	Filter          string           `json:"filter,omitempty"` // only segments that match it were analysed; empty: all
	Files           []File           `json:"files"`
	Warnings        Warnings         `json:"warnings"`

	FastPackets int64 `json:"-"` // packets that took the fast path
}

// NewMemorySink returns a sink that keeps the rows of the tables in the set and
// drops the rest. It keeps at most `most` rows over all tables (0: no bound);
// beyond that, [Sink.Err] returns [ErrRows].
func NewMemorySink(set Set, most int64) *Sink {
	s := &Sink{}
	b := s.bound(most)
	for i, slot := range s.slots() {
		if set&catalog[i].set != 0 {
			slot.open().keepRows(b)
		}
	}
	return s
}

// ErrRows means that a sink received more rows than it may keep.
var ErrRows = errors.New("too many rows to keep in memory")

// bound sets the maximum number of kept rows and returns the budget; nil: no
// bound.
func (s *Sink) bound(most int64) *budget {
	if most > 0 {
		s.budget = &budget{left: most}
	}
	return s.budget
}

// Err returns [ErrRows] if the sink received more rows than it may keep.
func (s *Sink) Err() error {
	if s.budget != nil && s.budget.over {
		return ErrRows
	}
	return nil
}

// Result sorts the kept rows by connection. The order of the rows within a
// connection does not change.
func (s *Sink) Result(files []File, warnings Warnings) *Result {
	return &Result{
		Schema:          Schema,
		Connections:     byConnection(s.Connections),
		Subflows:        byConnection(s.Subflows),
		Directions:      byConnection(s.Directions),
		RTT:             byConnection(s.RTT),
		Retransmissions: byConnection(s.Retransmissions),
		Reinjections:    byConnection(s.Reinjections),
		Bursts:          byConnection(s.Bursts),
		Throughput:      byConnection(s.Throughput),
		ACKSizes:        byConnection(s.ACKSizes),
		Events:          byConnection(s.Events),
		Points:          byConnection(s.Points),
		Objects:         byConnection(s.Objects),
		Files:           files,
		Warnings:        warnings,
	}
}

// byConnection sorts the rows in place. The first field of every row is the
// number of its connection.
func byConnection[R any](s *Stream[R]) []R {
	if s == nil {
		return nil
	}
	type place struct{ connection, row int }
	rows := reflect.ValueOf(s.rows)
	order := make([]place, len(s.rows))
	for i := range order {
		order[i] = place{int(rows.Index(i).Field(0).Int()), i}
	}
	slices.SortStableFunc(order, func(a, b place) int { return cmp.Compare(a.connection, b.connection) })
	for i := range order { // follow each cycle of the permutation
		first := s.rows[i]
		for at := i; ; {
			from := order[at].row
			order[at].row = at
			if from == i {
				s.rows[at] = first
				break
			}
			s.rows[at] = s.rows[from]
			at = from
		}
	}
	if s.rows == nil {
		return []R{}
	}
	return s.rows
}
