package tables

// Sink accepts the rows of all tables. Connections are added when they end, so
// not in the order of their numbers; in each table, the rows of one connection
// are adjacent. The stream of an unwanted table is nil and drops its rows.
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

	budget *budget // of the kept rows; nil: no bound
}

// Stream accepts the rows of one table. It may be nil.
type Stream[R any] struct {
	rows  []R
	taken int             // number of rows passed to write
	keep  bool            // keep rows after write
	full  int             // flush when this many rows wait for write; 0: there is no write
	write func([]R) error // receives the rows in order
	err   error           // first error of write; later rows are dropped

	watch   func([]R) // receives the rows in order, before they are dropped
	shown   int       // number of rows passed to watch
	before  func()    // called before watch
	budget  *budget   // of the kept rows; nil: no bound
	surplus *R        // the last row beyond the budget
}

// budget bounds the number of kept rows of all tables.
type budget struct {
	left int64
	over bool // there were more rows
}

// Add adds a row.
func (s *Stream[R]) Add(row R) {
	if s != nil {
		*s.Next() = row
	}
}

// Next adds a zero row and returns it. The caller may fill it in until the next
// row is added. Rows are built in place because copying a wide row costs more
// than computing its values.
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

// Rows returns the kept rows. They are valid until the next Add.
func (s *Stream[R]) Rows() []R {
	if s == nil {
		return nil
	}
	return s.rows
}

// flush passes the new rows to write.
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

// look passes the new rows to watch.
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

// watched is the number of rows that are collected for watch in a stream
// without write.
const watched = 64

// show registers watch with a stream, and makes the stream if it is nil.
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
