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
	Counter     *Counter      // between Conn and TCP, when Conn is TLS
	ID          uint8         // of the path, the same whenever it is set up again
	Incarnation uint32        // counts how often it was
	Name        string        // of the interface
	Backup      bool          // used only when no other can be, by streams whose scheme does not name paths
	Overhead    int           // bytes that Conn adds to each write
	Keepalive   time.Duration // how long the path may be silent; 0: as Config has it
}

type pathState uint8

const (
	up pathState = iota
	gone
)

// Path is one connection of a session, from its attachment to its end.
type Path struct {
	s    *Session
	link Link
	conn net.Conn

	// Guarded by the session's lock:
	state    pathState
	work     sync.Cond // there is something to send
	idle     bool      // the writer waits for that
	blocked  bool      // … for room in the kernel
	room     int       // bytes that may be written now
	written  uint64    // to TCP, as far as is known
	delivery uint64    // of written, acknowledged by the other side's TCP
	payload  uint64    // of written, behind the last message or datagram
	sent     entries
	info     netx.State
	rate     rateMax
	minRTT   time.Duration
	progress int64 // when delivery last grew, or something was written to an empty connection
	stalled  bool
	copied   int      // of sent: looked at for copies since the path is stalled
	control  []byte   // frames for this path alone
	twins    []entry  // messages that go over this path too
	copies   []queued // datagrams that go over this path too
	ahead    int      // bytes that datagrams had before streams while both wait
	taken    uint64   // bytes of frames that were read and done with
	heardNS  int64    // when something was read
	pingNS   int64    // when a ping was sent that was not answered; 0: none
	pings    uint64
	stats    PathStatus
	over     chan struct{}
	once     sync.Once // closes over

	goAway     bool   // the other side is to be told that the session ends
	endedThere bool   // the other side took the path for ended,
	tookThere  uint64 // after so many bytes of frames

	gauge *netx.Gauge
	gate  *netx.Gate

	buffer  int // bytes that may be committed to TCP (feeding.go); 0: late binding
	pending int // bytes of messages that are about to be written
}

// Attach makes a path of an open connection. The path of an earlier
// incarnation ends. Done of the path is closed when it has ended.
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

// Stalled says whether the path makes no progress.
func (p *Path) Stalled() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.stalled
}

// view is what a scheduler sees of the path.
func (p *Path) view(backup bool) sched.Path {
	room := p.room
	if p.blocked {
		room = 0
	}
	rtt := p.info.RTT
	if p.info.Unacked == 0 && p.minRTT < rtt { // it says little of now
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

// space is how many bytes may be written after the gauge was read. What the
// congestion window has room for leaves at once, so only what is unsent counts,
// up to the ceiling of the path.
func (p *Path) space() int { return min(p.slack()-p.info.Unsent, p.ceiling()-p.info.Unacked) }

// patience is after how long there may be room without an acknowledgement: when
// it is not the congestion window that holds bytes back, pacing sends them on.
func (p *Path) patience() time.Duration {
	const least, most = 200 * time.Microsecond, 20 * time.Millisecond
	if p.info.Flight >= p.info.Window || p.info.Pacing <= 0 {
		return 0
	}
	return min(max(time.Duration(float64(p.mss()-p.space())/p.info.Pacing*float64(time.Second)), least), most)
}

// message is how many bytes of payload a message of a stream has on this path:
// a segment, or on a fast path what leaves within half a millisecond. Where each
// message is a record of its own, those of long streams are larger, so that
// headers stay below a hundredth.
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

// refresh reads the gauge and takes note of what was delivered.
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

// write sends what the session has for the path until it ends.
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

// farewell tells the other side that the session ends. What still arrives is
// read for a while: closing before that would be a reset, which overtakes what
// was told.
func (p *Path) farewell() error {
	if _, err := p.conn.Write(frame.Header{Type: frame.GoAway}.Append(nil)); err != nil {
		return err
	}
	return p.link.TCP.CloseWrite()
}

// account counts a batch, of which n bytes were written.
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

// readAhead is how many bytes may be read before it is known what they belong
// to, and are copied: larger payloads are read into their place.
const readAhead = 16 << 10

// read takes what the other side sends until the path ends.
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
	told := p.goAway
	p.s.mu.Unlock()
	if told {
		_, _ = io.Copy(io.Discard, p.link.TCP)
	}
	p.end(err)
	p.s.mu.Lock()
	p.s.tookAll(p)
	p.s.mu.Unlock()
}

// end ends the path: its messages go over others.
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
	_ = p.conn.SetReadDeadline(time.Now().Add(drainTime)) // what has arrived is still read
	s.wake()
}

// drainTime bounds how long a path that has ended is read.
const drainTime = 50 * time.Millisecond

// Abandon ends the path for a reason: its messages go over other paths at once,
// and its connection is closed.
func (p *Path) Abandon(why error) { p.end(why) }

// LocalAddr is the address of this end of the path's connection.
func (p *Path) LocalAddr() net.Addr { return p.link.TCP.LocalAddr() }

// Why a path was given up.
var (
	errReplaced = errors.New("another connection has taken its place")
	errThere    = errors.New("it has ended at the other side")
)

// rateMax is the highest delivery rate, in bytes a second. A sample that comes more
// than rateMemory after the highest one replaces it, by the second highest or itself.
// Without samples, which a path gives only at its full rate, it does not change.
type rateMax struct {
	best, next     float64
	bestNS, nextNS int64
}

// rateMemory is for how long no later sample replaces a higher rate.
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
