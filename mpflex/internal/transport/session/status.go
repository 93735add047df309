package session

import (
	"errors"
	"slices"
	"time"

	"mplab/internal/netx"
)

var errSilent = errors.New("no answer to a ping")

// Counters counts events of a session. Bytes are those of payload.
type Counters struct {
	CopiedTail      int64 `json:"copied_tail_bytes"`
	CopiedStall     int64 `json:"copied_stall_bytes"`
	CopiedBuffer    int64 `json:"copied_buffer_bytes"`
	CopiedRedundant int64 `json:"copied_redundant_bytes"`
	SentAgain       int64 `json:"sent_again_bytes"` // after a path ended
	Duplicates      int64 `json:"duplicate_bytes"`  // received copies of bytes that were already there
	DatagramsOut    int64 `json:"datagrams_out"`    // without copies
	DatagramsIn     int64 `json:"datagrams_in"`     // without duplicates

	DatagramsDropped   int64 `json:"datagrams_dropped"`   // before they were sent
	DatagramCopies     int64 `json:"datagram_copies"`     // sent in addition to datagrams_out
	DatagramDuplicates int64 `json:"datagram_duplicates"` // received and dropped
}

// PathStatus reports the traffic and the state of a path, or its state when it ended.
// Bytes are those of payload unless the field says otherwise.
type PathStatus struct {
	ID            uint8     `json:"path"`
	Name          string    `json:"interface"`
	Incarnation   uint32    `json:"incarnation"`
	Local         string    `json:"local"`
	Remote        string    `json:"remote"`
	Attached      time.Time `json:"-"`
	AgeS          float64   `json:"age_s"` // since the attach
	Stalled       bool      `json:"stalled"`
	BytesOut      int64     `json:"bytes_out"`
	BytesIn       int64     `json:"bytes_in"`
	MessagesOut   int64     `json:"messages_out"`
	MessagesIn    int64     `json:"messages_in"`
	CopiesOut     int64     `json:"copies_out_bytes"`
	CopiesIn      int64     `json:"copies_in_bytes"`
	ControlOut    int64     `json:"control_out_bytes"`
	Framed        uint64    `json:"framed_out_bytes"` // payload and headers
	DatagramsOut  int64     `json:"datagrams_out"`    // with copies
	DatagramsIn   int64     `json:"datagrams_in"`
	RTTMS         float64   `json:"rtt_ms"`
	MinRTTMS      float64   `json:"min_rtt_ms"`
	RateBPS       float64   `json:"rate_bps"` // highest recent delivery rate, in bits per second
	WindowBytes   int       `json:"cwnd_bytes"`
	QueuedBytes   int       `json:"queued_bytes"`
	Retransmitted uint32    `json:"retransmitted_segments"`

	CongestionControl string `json:"congestion_control"`
	ReceiveBuffer     int    `json:"receive_buffer_bytes"` // now; the kernel may increase it
}

// StreamStatus reports the traffic of a stream.
type StreamStatus struct {
	ID       uint32    `json:"stream"`
	Opened   time.Time `json:"-"`
	AgeS     float64   `json:"age_s"`
	IdleS    float64   `json:"idle_s"` // since a path last sent or received bytes of it
	BytesOut int64     `json:"bytes_out"`
	BytesIn  int64     `json:"bytes_in"`
	Unsent   int64     `json:"unsent_bytes"`
	Paths    []Carried `json:"paths"`
	Waiting  int64     `json:"waiting_bytes"` // received and not read, in order or behind a gap
	WaitedMS float64   `json:"waited_ms"`     // mean time that a byte waited for missing bytes before it
}

// Carried counts the bytes of a stream that a path carried.
type Carried struct {
	ID     uint8  `json:"path"`
	Name   string `json:"interface"`
	Out    int64  `json:"bytes_out"` // without copies
	In     int64  `json:"bytes_in"`  // with copies
	Copies int64  `json:"copies_out_bytes"`
}

// carried returns the row of a path, and adds it if it is new.
func (row *StreamStatus) carried(p *Path) *Carried {
	for i := range row.Paths {
		if row.Paths[i].ID == p.link.ID {
			return &row.Paths[i]
		}
	}
	row.Paths = append(row.Paths, Carried{ID: p.link.ID, Name: p.link.Name})
	return &row.Paths[len(row.Paths)-1]
}

// Status returns the traffic of the stream up to now.
func (st *Stream) Status() StreamStatus {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.status()
}

func (st *Stream) status() StreamStatus {
	row := st.stats
	row.ID, row.Unsent, row.Waiting = st.id, int64(st.out.end-st.next), int64(st.in.waiting)
	row.WaitedMS = st.in.waitedMS()
	row.AgeS, row.IdleS = seconds(time.Since(row.Opened)), seconds(time.Duration(st.s.nowNS()-st.movedNS))
	row.Paths = slices.Clone(row.Paths)
	return row
}

// Status is a snapshot of a session. The counters of a path are sums over all its
// incarnations.
type Status struct {
	AgeS     float64      `json:"age_s"`
	BytesOut int64        `json:"bytes_out"` // payload of all paths, with copies
	BytesIn  int64        `json:"bytes_in"`
	Paths    []PathStatus `json:"paths"`
	Gone     []PathStatus `json:"paths_gone"` // paths that ended and were not attached again
	Streams  int          `json:"streams"`
	Ended    int64        `json:"streams_ended"`
	Unsent   int          `json:"unsent_bytes"`
	Received int          `json:"received_bytes"` // wait for their readers
	Memory   int64        `json:"memory_bytes"`   // charged to the budget
	Counters Counters     `json:"counters"`
}

// Status returns a snapshot of the session.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{
		AgeS: seconds(time.Since(s.begun)), Streams: len(s.streams), Ended: s.settled, Unsent: s.unsent, Received: s.received, Memory: s.memory.Load(),
		Counters: s.totals, Paths: []PathStatus{}, Gone: []PathStatus{},
	}
	earlier := s.history.all()
	for _, p := range s.paths {
		status.Paths = append(status.Paths, p.status().with(earlier[p.link.ID]))
		delete(earlier, p.link.ID)
	}
	for _, row := range earlier {
		status.Gone = append(status.Gone, row)
	}
	for _, rows := range [][]PathStatus{status.Paths, status.Gone} {
		slices.SortFunc(rows, func(a, b PathStatus) int { return int(a.ID) - int(b.ID) })
		for _, row := range rows {
			status.BytesOut, status.BytesIn = status.BytesOut+row.BytesOut, status.BytesIn+row.BytesIn
		}
	}
	return status
}

// Streams returns the status of each open stream, by ascending number.
func (s *Session) Streams() []StreamStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]StreamStatus, 0, len(s.streams))
	for _, st := range s.streams {
		list = append(list, st.status())
	}
	slices.SortFunc(list, func(a, b StreamStatus) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return list
}

// Status returns the status of the path. It works after the path's end, too.
func (p *Path) Status() PathStatus {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.status()
}

func (p *Path) status() PathStatus {
	row := p.stats
	row.ID, row.Name, row.Incarnation, row.Stalled = p.link.ID, p.link.Name, p.link.Incarnation, p.stalled
	row.Local, row.Remote = p.link.TCP.LocalAddr().String(), p.link.TCP.RemoteAddr().String()
	row.RTTMS, row.MinRTTMS = milliseconds(p.info.RTT), milliseconds(p.minRTT)
	row.RateBPS, row.WindowBytes, row.QueuedBytes = 8*p.rate.best, p.info.Window, int(p.written-p.delivery)
	row.Retransmitted, row.AgeS = p.info.Retransmitted, seconds(time.Since(row.Attached))
	row.ReceiveBuffer = netx.ReceiveBuffer(p.link.TCP)
	return row
}

// seconds returns a duration in seconds, with millisecond resolution.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
