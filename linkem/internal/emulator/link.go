package emulator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"mplab/linkem/internal/config"
	"mplab/linkem/internal/port"
	"mplab/linkem/internal/system"
	"mplab/linkem/model"
)

const (
	linkPriority = 10           // SCHED_FIFO priority: above ordinary processes, below the kernel's threads
	receiveBatch = 128          // maximum number of frames taken from one ring before due ones are sent
	longestSleep = int64(1e9)   // ns; only limits the damage of a bug
	staleArrival = int64(500e6) // ns; an older stamp means that the wall clock was set
	waitingMost  = 16           // capacity of commands
	restTime     = int64(500e3) // ns to ignore a busy ring whose frames have a longer delay anyway
)

var errLinkEnded = errors.New("the link has ended")

// link relays frames between two ports. All fields except commands and done belong to the goroutine of run.
type link struct {
	config   config.Link
	seed     uint64
	clock    clock
	a, b     *port.Port
	up, down *model.Direction
	how      string // scheduling of the thread, see system.TuneThread

	wake     int              // eventfd: there is a command, or stop was called
	commands chan func(int64) // called with the time, on the thread of the link
	stopping chan struct{}    // closed by stop
	started  chan struct{}    // closed when the thread is set up
	done     chan struct{}    // closed when run has returned
	warn     func(string)     // logs a warning; called from any thread
	warned   map[string]bool  // warnings already logged
	polled   [3]unix.PollFd   // a, b, wake
}

// openLink opens both interfaces of a link.
func openLink(config config.Link, seed uint64, clock clock, warn func(string)) (*link, error) {
	prefixes := model.NewPrefixDelays(config.DelayByPrefix)
	l := &link{
		config: config, seed: seed, clock: clock, warn: warn, warned: map[string]bool{},
		up:       model.NewDirection(config.Up, prefixes, model.NewChance(seed, config.Name, "up")),
		down:     model.NewDirection(config.Down, prefixes, model.NewChance(seed, config.Name, "down")),
		commands: make(chan func(int64), waitingMost), stopping: make(chan struct{}), started: make(chan struct{}), done: make(chan struct{}),
	}
	var err error
	if l.a, err = port.Open(config.A); err != nil {
		return nil, fmt.Errorf("link %s: %w", config.Name, err)
	}
	if l.b, err = port.Open(config.B); err != nil {
		l.a.Close()
		return nil, fmt.Errorf("link %s: %w", config.Name, err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		l.a.Close()
		l.b.Close()
		return nil, fmt.Errorf("link %s: eventfd: %w", config.Name, err)
	}
	for i, fd := range []int{l.a.FD(), l.b.FD(), l.wake} {
		l.polled[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	return l, nil
}

// run relays frames until stop is called or an interface disappears.
func (l *link) run() error {
	// Never unlocked: the thread has a priority and ends with the goroutine.
	runtime.LockOSThread()
	defer close(l.done)
	l.how = system.TuneThread(linkPriority)
	close(l.started)
	for {
		someA, moreA := l.receive(l.a, l.up, model.DestinationIsB)
		someB, moreB := l.receive(l.b, l.down, model.SourceIsB)
		rest := l.rest(0, someA, l.up)
		rest = l.rest(1, someB, l.down) || rest
		now, _ := l.clock.now()
		l.send(l.up, l.b, now)
		l.send(l.down, l.a, now)
		if err := l.wait(moreA || moreB, rest); err != nil {
			return err
		}
		if l.polled[2].Revents != 0 {
			if ended := l.runCommands(); ended {
				return nil
			}
		}
	}
}

// rest reports whether the ring of a port need not wake the thread for restTime: the kernel stamps frames that arrive
// during that time, and none of them can be due by then. On a busy link this saves half of the wake-ups.
func (l *link) rest(index int, some bool, d *model.Direction) bool {
	rest := some && d.ShortestWay() >= 2*restTime
	l.polled[index].Events = unix.POLLIN
	if rest {
		l.polled[index].Events = 0
	}
	return rest
}

// receive takes frames from the ring of a port into a direction. It reports whether there were some, and whether there
// may be more.
func (l *link) receive(p *port.Port, d *model.Direction, which model.Side) (some, more bool) {
	now, wall := l.clock.now()
	for n := range receiveBatch {
		in, waiting := p.Next()
		if !waiting {
			return n > 0, false
		}
		if !in.Outgoing {
			// Use the kernel's arrival time of the frame, not the time when this thread woke up.
			age := wall - in.Wall
			if age < 0 || age > staleArrival {
				age = 0
			}
			l.take(in, now-age, p, d, which)
		}
		p.Done()
	}
	return true, true
}

func (l *link) take(in port.Arrival, at int64, p *port.Port, d *model.Direction, which model.Side) {
	data, ok := p.Complete(in)
	if !ok {
		return
	}
	f := d.NewFrame(data, which)
	if f.Bytes > p.MTU {
		p.Oversize++
		l.tell(p.Name, "a frame of %d bytes came in, more than the MTU of %d: turn off TSO, GSO and GRO where it came from, or loss and queue act on bundles of packets",
			len(data)-model.VnetHeader, p.MTU)
	}
	d.Arrive(at, f)
}

// send sends the due frames.
func (l *link) send(d *model.Direction, p *port.Port, now int64) {
	for {
		for f := d.Due(now); f != nil; f = d.Due(now) {
			p.Add(f)
			if p.Full() {
				break
			}
		}
		again := p.Full()
		if errno := p.Flush(d); errno != 0 {
			l.tell(p.Name, "frames could not be sent (%v); they count as dropped_send", errno)
		}
		if !again {
			return
		}
	}
}

// wait sleeps until a frame arrives, one is due, or there is a command: with rest at most restTime, with busy not at
// all.
func (l *link) wait(busy, rest bool) error {
	sleep := longestSleep
	switch {
	case busy:
		sleep = 0
	case rest:
		sleep = restTime
	}
	now, _ := l.clock.now()
	for _, d := range []*model.Direction{l.up, l.down} {
		if next, some := d.Next(); some {
			sleep = min(sleep, next-now)
		}
	}
	timeout := unix.NsecToTimespec(max(sleep, 0))
	for i := range l.polled {
		l.polled[i].Revents = 0
	}
	if _, err := unix.Ppoll(l.polled[:], &timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("link %s: poll: %w", l.config.Name, err)
	}
	for i, p := range []*port.Port{l.a, l.b} {
		if l.polled[i].Revents&^unix.POLLIN == 0 {
			continue
		}
		if err := p.Troubled(); err != nil {
			return fmt.Errorf("link %s: %w", l.config.Name, err)
		}
	}
	return nil
}

// runCommands runs the waiting commands. It returns true if the link must stop.
func (l *link) runCommands() bool {
	var count [8]byte
	_, _ = unix.Read(l.wake, count[:]) // resets the eventfd; EAGAIN is harmless
	for {
		select {
		case command := <-l.commands:
			now, _ := l.clock.now()
			command(now)
		case <-l.stopping:
			return true
		default:
			return false
		}
	}
}

// do runs a command on the thread of the link, with the time, and waits for its end.
func (l *link) do(command func(now int64)) error {
	finished := make(chan struct{})
	wrapped := func(now int64) {
		command(now)
		close(finished)
	}
	select {
	case l.commands <- wrapped:
		l.kick()
	case <-l.done:
	}
	select {
	case <-finished:
		return nil
	case <-l.done:
		return fmt.Errorf("link %s: %w", l.config.Name, errLinkEnded)
	}
}

// stop ends run.
func (l *link) stop() {
	close(l.stopping)
	l.kick()
}

// kick wakes the thread of the link.
func (l *link) kick() {
	_, _ = unix.Write(l.wake, binary.NativeEndian.AppendUint64(nil, 1))
}

// tell logs a warning once per port and kind of problem.
func (l *link) tell(port, format string, args ...any) {
	kind := port + format
	if !l.warned[kind] {
		l.warned[kind] = true
		l.warn(fmt.Sprintf("link "+l.config.Name+": "+port+": "+format, args...))
	}
}

// close closes what openLink opened. run must have returned, or must not have started.
func (l *link) close() {
	l.a.Close()
	l.b.Close()
	_ = unix.Close(l.wake)
}
