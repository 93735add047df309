package tables

// Sink takes the rows of all tables as they become known. Connections come
// when they end, so not in the order of their numbers; the rows of one
// connection follow each other in each table. A table that nobody wants has
// no stream: nil streams take rows and forget them.
type Sink struct {
	Connections     *Stream[Connection]
	Subflows        *Stream[Subflow]
	Directions      *Stream[Direction]
	RTT             *Stream[RTT]
	Retransmissions *Stream[Retransmission]
	Reinjections    *Stream[Reinjection]
	Bursts          *Stream[Burst]
	Throughput      *Stream[Throughput]
	ACKSizes        *Stream[ACKSize]
	Events          *Stream[Event]
	Points          *Stream[Point]
	Objects         *Stream[Object]

	budget *budget // of the rows that are kept; nil: no bound
}

// Stream takes the rows of one table. It may be nil.
type Stream[R any] struct {
	rows  []R
	taken int             // how many of rows write has had
	keep  bool            // rows are kept after write has had them
	full  int             // how many rows wait for write at most; 0: there is no write
	write func([]R) error // takes rows in their order
	err   error           // the first error of write; later rows are dropped

	watch   func([]R) // is shown rows in their order, before they are dropped
	shown   int       // how many of rows watch has had
	before  func()    // called before watch
	budget  *budget   // of the rows that are kept; nil: no bound
	surplus *R        // the row beyond it
}

// budget bounds how many rows are kept, all tables together.
type budget struct {
	left int64
	over bool // there were more
}

// Add takes a row.
func (s *Stream[R]) Add(row R) {
	if s != nil {
		*s.Next() = row
	}
}

// Next adds a row of zeros and returns it to be filled in, until the next one
// is added. Wide rows are made in their place: copies would cost more than the
// values.
func (s *Stream[R]) Next() *R {
	if s == nil {
		return new(R)
	}
	if s.full > 0 && len(s.rows)-s.taken >= s.full {
		s.flush()
	}
	if s.budget != nil {
		if s.budget.left == 0 {
			s.budget.over = true
			s.surplus = new(R)
			return s.surplus
		}
		s.budget.left--
	}
	n := len(s.rows)
	if s.err != nil {
		n = s.taken
	}
	if n < cap(s.rows) {
		s.rows = s.rows[:n+1]
		clear(s.rows[n:])
	} else {
		s.rows = append(s.rows[:n], *new(R))
	}
	return &s.rows[n]
}

// Rows returns the rows that are kept; valid until the next Add.
func (s *Stream[R]) Rows() []R {
	if s == nil {
		return nil
	}
	return s.rows
}

// flush gives write what it has not had.
func (s *Stream[R]) flush() {
	s.look()
	if s.write != nil && s.err == nil && len(s.rows) > s.taken {
		s.err = s.write(s.rows[s.taken:])
	}
	if s.keep {
		s.taken = len(s.rows)
	} else {
		s.rows, s.shown = s.rows[:0], 0
	}
}

// look shows watch the rows that it has not had.
func (s *Stream[R]) look() {
	if s == nil || s.watch == nil {
		return
	}
	if s.before != nil {
		s.before()
	}
	if rows := s.rows[s.shown:]; len(rows) > 0 {
		s.shown = len(s.rows)
		s.watch(rows)
	}
}

// watched is the number of rows that wait before watch gets them, in a stream without write.
const watched = 64

// show makes a stream show its rows to watch; the stream is made when it is not
// there.
func show[R any](at **Stream[R], before func(), watch func([]R)) {
	if *at == nil {
		*at = &Stream[R]{}
	}
	s := *at
	s.watch, s.before = watch, before
	if s.full == 0 {
		s.full = watched
	}
}
