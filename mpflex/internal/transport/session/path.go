package session

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/internal/transport/frame"
	"mplab/mpflex/internal/transport/sched"
)

// Link is an open connection that becomes a path.
type Link struct {
	Conn        net.Conn // to read and write: TCP itself, or TLS over it
	TCP         *net.TCPConn
	Counter     *Counter      // writes TLS records to TCP, when Conn is TLS
	ID          uint8         // number of the path, the same in all incarnations
	Incarnation uint32        // counts the connections of the path
	Name        string        // of the network interface
	Backup      bool          // use only while no other path can be used; for schemes without a list of paths
	Overhead    int           // bytes that Conn adds to each write
	Keepalive   time.Duration // maximum silence before a ping; 0: Config.Keepalive
}

type pathState uint8

const (
	up pathState = iota
	gone
)

// Path is one connection of a session, from the attach to its end.
type Path struct {
	s    *Session
	link Link
	conn net.Conn

	// All fields below are guarded by the session's lock.
	state    pathState
	work     sync.Cond // there is something to send
	idle     bool      // the writer waits on work
	blocked  bool      // the writer waits for room in the kernel's send queue
	room     int       // bytes that may be written now
	written  uint64    // bytes written to TCP
	delivery uint64    // bytes of written that the other side's TCP has acknowledged
	payload  uint64    // value of written after the last message or datagram
	sent     entries
	info     netx.State
	rate     rateMax
	minRTT   time.Duration
	progress int64 // when delivery last grew, or something was written to an empty connection
	stalled  bool
	copied   int      // entries of sent that were considered for copies since the stall
	control  []byte   // control frames for this path only
	twins    []entry  // copies of messages that a scheduler placed on several paths
	copies   []queued // copies of datagrams that a scheduler placed on several paths
	ahead    int      // bytes that datagrams are ahead of streams while both wait
	taken    uint64   // bytes of received frames that were processed
	heardNS  int64    // time of the last received frame
	pingNS   int64    // time of the unanswered ping; 0: none
	pings    uint64
	stats    PathStatus
	over     chan struct{}
	once     sync.Once // closes over

	goAway     bool   // send go away: the session ends
	endedThere bool   // the other side sent a path end for this path,
	tookThere  uint64 // with this many bytes of frames taken

	gauge *netx.Gauge
	gate  *netx.Gate

	buffer  int // bytes that may be committed to TCP (feeding.go); 0: late binding
	pending int // bytes of messages in the batch that is about to be written
}

// Attach makes an open connection a path. It ends the path's earlier incarnation. It
// fails if the session has ended, if the path has a later incarnation, or if TCP's
// state cannot be read.
func (s *Session) Attach(l Link) (*Path, error) {
	gauge, err := netx.NewGauge(l.TCP)
	if err != nil {
		return nil, err
	}
	gate, err := netx.NewGate(l.TCP)
	if err != nil {
		return nil, err
	}
	if err := netx.Pace(l.TCP); err != nil {
		return nil, err
	}
	p := &Path{s: s, link: l, conn: l.Conn, gauge: gauge, gate: gate, over: make(chan struct{})}
	p.work.L = &s.mu
	if err := p.commit(); err != nil {
		return nil, err
	}
	if p.info, err = gauge.Read(); err != nil {
		return nil, err
	}
	p.minRTT = p.info.RTT
	set(&p.link.Keepalive, s.config.Keepalive)
	p.stats.Attached, p.stats.CongestionControl = time.Now(), netx.Congestion(l.TCP)

	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return nil, s.err
	}
	var former *Path
	for _, other := range s.paths {
		if other.link.ID == l.ID {
			former = other
		}
	}
	if former != nil && former.link.Incarnation > l.Incarnation {
		s.mu.Unlock()
		return nil, errReplaced
	}
	p.heardNS, p.progress = s.nowNS(), s.nowNS()
	p.room = p.space()
	if l.Counter != nil {
		l.Counter.begin()
	}
	s.paths = append(s.paths, p)
	s.pathless, s.attached = time.Time{}, true
	s.tell(p.event(Attached, nil))
	s.watching.Add(2)
	s.mu.Unlock()
	if former != nil {
		former.Abandon(errReplaced)
	}
	go func() {
		defer s.watching.Done()
		p.write()
	}()
	go func() {
		defer s.watching.Done()
		p.read()
	}()
	s.mu.Lock()
	s.wake()
	s.mu.Unlock()
	return p, nil
}

// Done is closed when the path has ended.
func (p *Path) Done() <-chan struct{} { return p.over }

// Stalled reports whether the path makes no progress.
func (p *Path) Stalled() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.stalled
}

// view returns the state of the path for a scheduler.
func (p *Path) view(backup bool) sched.Path {
	room := p.room
	if p.blocked {
		room = 0
	}
	rtt := p.info.RTT
	if p.info.Unacked == 0 && p.minRTT < rtt { // the smoothed RTT is out of date
		rtt = p.minRTT
	}
	return sched.Path{
		ID: p.link.ID, Backup: backup, RTT: rtt, MinRTT: p.minRTT, Rate: p.rate.max(p.s.nowNS()), Window: p.info.Window,
		Queued: p.queued(), Room: room, Stalled: p.stalled,
	}
}

func (p *Path) mss() int {
	if p.info.MSS > 0 {
		return p.info.MSS
	}
	return 1448
}

// space returns how many bytes may be written after the gauge was read. Bytes that fit
// into the congestion window leave at once. So only unsent bytes count against slack,
// and unacknowledged bytes against the ceiling.
func (p *Path) space() int { return min(p.slack()-p.info.Unsent, p.ceiling()-p.info.Unacked) }

// patience returns how long to wait for room if no acknowledgement arrives. If pacing
// holds bytes back, not the congestion window, they leave without one. 0: wait for
// acknowledgements.
func (p *Path) patience() time.Duration {
	const least, most = 200 * time.Microsecond, 20 * time.Millisecond
	if p.info.Flight >= p.info.Window || p.info.Pacing <= 0 {
		return 0
	}
	return min(max(time.Duration(float64(p.mss()-p.space())/p.info.Pacing*float64(time.Second)), least), most)
}

// message returns the payload of a stream's message on this path, in bytes: one
// segment, or on a fast path the bytes that leave within 0.5 ms. With TLS each message
// may be a record: messages of long streams are then larger, so that headers stay below
// 1 %.
func (p *Path) message(st *Stream) int {
	const (
		large = 64<<10 - frame.HeaderSize
		fast  = 4 // segments in half a millisecond
		long  = 256 << 10
	)
	mss := p.mss()
	segment := mss - frame.HeaderSize - p.link.Overhead
	if p.link.Overhead > 0 && st.next >= long {
		segment = 4<<10 - frame.HeaderSize - p.link.Overhead
	}
	if n := int(p.rate.max(p.s.nowNS())/2000) / mss; n >= fast {
		return min(n*mss-frame.HeaderSize-p.link.Overhead, large)
	}
	return max(segment, 512)
}

// refresh reads the gauge and updates rate, RTT and the delivered messages.
func (p *Path) refresh() error {
	info, err := p.gauge.Read()
	if err != nil {
		return err
	}
	now := p.s.nowNS()
	p.info = info
	if info.MinRTT > 0 {
		p.minRTT = info.MinRTT
	} else if p.minRTT == 0 || info.RTT < p.minRTT {
		p.minRTT = info.RTT
	}
	if !info.RateLimited || info.Rate > p.rate.max(now) {
		p.rate.add(now, info.Rate)
	}
	if unacked := uint64(info.Unacked); unacked <= p.written {
		if delivered := p.written - unacked; delivered > p.delivery {
			p.delivery, p.progress = delivered, now
			p.sent.delivered(delivered)
			if p.stalled {
				p.stalled = false
				p.s.tell(p.event(Recovered, nil))
				p.s.wake()
			}
		}
	}
	return nil
}

// write sends batches of the session until the path ends.
func (p *Path) write() {
	s := p.s
	var b batch
	var failure error
	s.mu.Lock()
	for p.state == up && failure == nil {
		if !s.fill(p, &b) {
			p.idle = true
			p.work.Wait()
			p.idle = false
			continue
		}
		s.mu.Unlock()
		n, err := p.send(&b)
		s.mu.Lock()
		b.drop()
		p.account(&b, n)
		if b.payload {
			p.payload = p.written
		}
		s.watchOver()
		if failure = err; failure != nil {
			break
		}
		if failure = p.refresh(); failure != nil {
			break
		}
		for p.room = p.space(); p.room <= 0 && failure == nil && p.state == up; p.room = p.space() {
			bound, patience, drain := p.slack(), p.patience(), p.drain()
			p.blocked = true
			s.watchOver()
			s.mu.Unlock()
			if drain > 0 {
				time.Sleep(drain)
			} else {
				failure = p.gate.Wait(bound, patience)
			}
			s.mu.Lock()
			p.blocked = false
			if failure == nil {
				failure = p.refresh()
			}
		}
	}
	over, tell := s.err != nil, p.goAway
	s.mu.Unlock()
	if !over {
		p.end(failure)
		return
	}
	if tell && failure == nil && p.farewell() == nil {
		return // the reader closes
	}
	_ = p.link.TCP.Close()
	p.once.Do(func() { close(p.over) })
}

// farewell sends go away and closes the sending direction. The reader continues for a
// while: closing the socket with unread bytes would send a reset, which can overtake
// the frame.
func (p *Path) farewell() error {
	if _, err := p.conn.Write(frame.Header{Type: frame.GoAway}.Append(nil)); err != nil {
		return err
	}
	return p.link.TCP.CloseWrite()
}

// account counts a batch of which n bytes were written.
func (p *Path) account(b *batch, n int) {
	p.pending = 0
	if p.written == p.delivery {
		p.progress = p.s.nowNS()
	}
	if p.link.Counter == nil {
		p.written += uint64(n)
		return
	}
	p.written = p.link.Counter.total()
	list := p.sent.list
	for i := max(0, len(list)-b.entries); i < len(list); i++ {
		list[i].end = p.written
	}
}

// readAhead is the size of the read buffer, in bytes. Larger payloads are read into
// their final memory without a copy.
const readAhead = 16 << 10

// read processes received frames until the path ends.
func (p *Path) read() {
	r := bufio.NewReaderSize(p.conn, readAhead)
	var err error
	for err == nil {
		err = p.readFrame(r)
	}
	switch {
	case errors.Is(err, io.EOF):
		err = nil
	case errors.Is(err, ErrProtocol):
		p.s.End(err)
	}
	p.s.mu.Lock()
	goingAway := p.goAway
	p.s.mu.Unlock()
	if goingAway {
		_, _ = io.Copy(io.Discard, p.link.TCP)
	}
	p.end(err)
	p.s.mu.Lock()
	p.s.tookAll(p)
	p.s.mu.Unlock()
}

// end ends the path. Its messages go over other paths.
func (p *Path) end(err error) {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	defer p.once.Do(func() { close(p.over) })
	if p.state == gone {
		return
	}
	p.state = gone
	p.work.Broadcast()
	for i, other := range s.paths {
		if other == p {
			s.paths = append(s.paths[:i], s.paths[i+1:]...)
			break
		}
	}
	s.history.ends(p)
	_ = p.refresh()
	s.lose(p)
	if len(s.paths) == 0 {
		s.pathless = time.Now()
	}
	s.tell(p.event(Ended, err))
	_ = p.link.TCP.CloseWrite()
	_ = p.conn.SetReadDeadline(time.Now().Add(drainTime)) // read the bytes that have arrived
	s.wake()
}

// drainTime bounds how long an ended path is read.
const drainTime = 50 * time.Millisecond

// Abandon ends the path for a reason. Its messages go over other paths at once, and its
// connection is closed.
func (p *Path) Abandon(why error) { p.end(why) }

// LocalAddr returns the local address of the path's connection.
func (p *Path) LocalAddr() net.Addr { return p.link.TCP.LocalAddr() }

// The reasons why a path was abandoned.
var (
	errReplaced = errors.New("another connection has taken its place")
	errThere    = errors.New("it has ended at the other side")
)

// rateMax holds the highest recent delivery rate, in bytes per second. A sample that
// arrives more than rateMemory after the highest one replaces it by the second highest
// or by itself. Only a path at its full rate gives samples. Without samples the value
// stays.
type rateMax struct {
	best, next     float64
	bestNS, nextNS int64
}

// rateMemory is how long a rate stays the highest if later samples are lower.
const rateMemory = int64(10 * time.Second)

func (r *rateMax) add(nowNS int64, rate float64) {
	switch {
	case rate >= r.best:
		r.best, r.bestNS, r.next, r.nextNS = rate, nowNS, 0, nowNS
	case nowNS-r.bestNS > rateMemory:
		r.best, r.bestNS = max(r.next, rate), nowNS
		r.next, r.nextNS = 0, nowNS
	case rate >= r.next || nowNS-r.nextNS > rateMemory/2:
		r.next, r.nextNS = rate, nowNS
	}
}

func (r *rateMax) max(int64) float64 { return r.best }
