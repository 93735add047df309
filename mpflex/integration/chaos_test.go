package integration

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mplab/mpflex/connlog"
)

var (
	chaosFor  = flag.Duration("chaos", 2*time.Minute, "for how long TestChaos makes trouble")
	chaosSeed = flag.Uint64("seed", 0, "of TestChaos; 0: a new one, which is printed")
)

const (
	// stuckAfter is how long a connection may make no progress while there are no
	// faults.
	stuckAfter = 10 * time.Second
	// calmEvery is the number of faults after which they pause.
	calmEvery = 25
)

// TestChaos runs mixed traffic through both programs while paths and programs fail at
// random. Every byte is right, no connection is stuck, and no resource is leaked.
func TestChaos(t *testing.T) {
	needLab(t)
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-chaos %v -seed %d", *chaosFor, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := newChaos(t, random.IntN(4) == 0)
	c.traffic(seed, time.Second, func(*rand.Rand) {}) // allocates everything that is allocated once
	before := c.quiet()
	c.traffic(seed+1, *chaosFor, c.trouble)
	after := c.quiet()
	t.Logf("%d connections, %d bytes; %d troubles; %d of %d datagrams answered\nbefore: %v\nafter:  %v",
		c.jobs.Load(), c.bytes.Load(), c.troubles, c.answered, c.sent, before, after)
	for role, b := range before {
		a := after[role]
		// Each side has one socket per path at any time.
		if a.goroutines > b.goroutines+4 || a.descriptors > b.descriptors+4 {
			t.Errorf("%s: something is left: %v before, %v after", role, b, a)
		}
		if most := 2*max(c.early[role], b.memory) + 64<<20; a.memory > most {
			t.Errorf("%s: %d bytes of memory, after at most %d in the first half", role, a.memory, c.early[role])
		}
	}
	if c.answered == 0 || c.troubles == 0 || c.again() == 0 {
		t.Errorf("%d datagrams answered, %d troubles, %d bytes sent again: nothing was tried", c.answered, c.troubles, c.again())
	}
}

// chaos is the state of both programs and of the faults.
type chaos struct {
	t              *testing.T
	programs       map[string]*program
	sockets        map[string]string
	jobs, bytes    atomic.Int64
	troubles       int
	sent, answered int
	early          map[string]int64 // maximum memory in the first half

	mu   sync.Mutex
	open map[*moving]job
	calm time.Time // start of the time without faults; zero: there is a fault
}

// moving is a connection that records when it last moved a byte.
type moving struct {
	*net.TCPConn
	last atomic.Int64 // unix nanoseconds
}

// Read implements io.Reader.
func (m *moving) Read(b []byte) (int, error) {
	defer m.moved()
	return m.TCPConn.Read(b)
}

// Write implements io.Writer.
func (m *moving) Write(b []byte) (int, error) {
	defer m.moved()
	return m.TCPConn.Write(b)
}

func (m *moving) moved() { m.last.Store(time.Now().UnixNano()) }

// sample holds the resources of a process.
type sample struct {
	goroutines, descriptors int
	memory                  int64 // resident, in bytes
}

func newChaos(t *testing.T, plain bool) *chaos {
	dir := t.TempDir()
	c := &chaos{t: t, open: map[*moving]job{}, early: map[string]int64{}, sockets: map[string]string{}, programs: map[string]*program{}}
	for _, role := range []string{"proxy", "agent"} {
		c.sockets[role] = filepath.Join(dir, role+".sock")
	}
	c.programs["proxy"] = startProxy(t, values{"control": c.sockets["proxy"]})
	changes := flex(plain)
	changes["listen"] = values{"redirect": "127.0.0.1:3128", "socks": socksServer}
	changes["control"] = c.sockets["agent"]
	c.programs["agent"] = startAgent(t, changes)
	serveOrigin(t, web, func(conn *net.TCPConn) {
		if err := answer(conn); err != nil {
			t.Errorf("at the origin: %v", err)
		}
	})
	echoDatagrams(t, "10.65.0.6:8080")
	output(t, "phone", "ip", "addr", "replace", "10.64.9.9/32", "dev", "lo")
	for _, link := range links {
		for _, end := range link.ends {
			limit(t, end, "60mbit")
		}
		t.Cleanup(func() {
			for _, end := range link.ends {
				output(t, end.node, "tc", "qdisc", "del", "dev", end.device, "root")
			}
		})
	}
	attached(t, c.programs["agent"])
	return c
}

// end is an end of a link.
type end struct{ node, device string }

var links = []struct {
	device, network string
	ends            [2]end
}{
	{"wlan0", "10.64.1", [2]end{{"phone", "wlan0"}, {"router", "wlan"}}},
	{"rmnet0", "10.64.2", [2]end{{"phone", "rmnet0"}, {"router", "rmnet"}}},
}

// limit sets the rate of one direction of a link.
func limit(t *testing.T, e end, rate string) {
	t.Helper()
	output(t, e.node, "tc", "qdisc", "replace", "dev", e.device, "root", "tbf", "rate", rate, "burst", "64kb", "latency", "60ms")
}

// traffic runs connections for d and waits until the last one has ended.
func (c *chaos) traffic(seed uint64, d time.Duration, trouble func(*rand.Rand)) {
	const applications = 12
	c.t.Helper()
	stop, ended := make(chan struct{}), make(chan struct{})
	var checking sync.WaitGroup
	checking.Go(func() { c.findStuck(ended) })
	defer checking.Wait()
	defer close(ended)
	timer := time.AfterFunc(d, func() { close(stop) })
	defer timer.Stop()
	var all sync.WaitGroup
	for i := range uint64(applications) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, i+1))
			for !closed(stop) && !c.t.Failed() {
				c.application(drawJob(random))
			}
		})
	}
	all.Go(func() { c.sent, c.answered = datagrams(c.t, seed, "10.65.0.6:8080", stop) })
	all.Go(func() { c.watch(stop, d) })
	for random := rand.New(rand.NewPCG(seed, 0)); !closed(stop) && !c.t.Failed(); {
		trouble(random)
		if c.troubles%calmEvery == calmEvery-1 {
			c.rest(true)
			select {
			case <-stop:
			case <-time.After(stuckAfter + time.Second):
			}
			c.rest(false)
		}
	}
	if !closed(stop) && timer.Stop() {
		close(stop)
	}
	c.rest(true)
	all.Wait()
	c.rest(false)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(10 * time.Millisecond):
		return false
	}
}

// dialLocally opens an application's connection from an address that does not change
// with those of the interfaces.
func (c *chaos) dialLocally() (conn *net.TCPConn, err error) {
	inNode(c.t, "phone", func() {
		conn, err = net.DialTCP("tcp4", &net.TCPAddr{IP: net.IPv4(10, 64, 9, 9)}, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(web)))
	})
	return conn, err
}

// application runs one connection.
func (c *chaos) application(j job) {
	conn, err := c.dialLocally()
	for range 100 {
		if !errors.Is(err, syscall.ENETUNREACH) { // the phone has no route while both interfaces are down
			break
		}
		time.Sleep(100 * time.Millisecond)
		conn, err = c.dialLocally()
	}
	if err != nil {
		c.t.Errorf("%+v: %v", j, err)
		return
	}
	stuck := time.AfterFunc(2*time.Minute, func() {
		c.t.Errorf("%+v (%v) hangs", j, conn.LocalAddr())
		_ = conn.SetDeadline(time.Unix(1, 0))
	})
	defer stuck.Stop()
	local, moving := conn.LocalAddr(), &moving{TCPConn: conn}
	moving.moved()
	c.mu.Lock()
	c.open[moving] = j
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, moving)
	}()
	if err := j.do(moving); err != nil {
		c.t.Errorf("%+v (%v): %v%s", j, local, err, c.told(local.String()))
	}
	c.jobs.Add(1)
	c.bytes.Add(j.Up + j.Down)
}

// told returns the log records of both programs about a connection.
func (c *chaos) told(src string) (lines string) {
	time.Sleep(time.Second)
	for role, p := range c.programs {
		for _, r := range records[connlog.Connection](c.t, p.log, "connection") {
			if r.Src.String() == src && time.Since(r.Opened.Time) < 3*time.Minute {
				lines += fmt.Sprintf("\n%s: %+v", role, r)
			}
		}
	}
	return lines
}

// findStuck reports connections without progress until all have ended.
func (c *chaos) findStuck(ended <-chan struct{}) {
	for !closed(ended) {
		c.mu.Lock()
		for m, j := range c.open {
			last := time.Unix(0, m.last.Load())
			if calm := c.calm; !calm.IsZero() && time.Since(calm) > stuckAfter && time.Since(last) > stuckAfter {
				c.t.Errorf("%+v (%v) is stuck since %v, without trouble since %v", j, m.LocalAddr(), last.Format(time.TimeOnly), calm.Format(time.TimeOnly))
				_ = m.SetDeadline(time.Unix(1, 0))
			}
		}
		c.mu.Unlock()
		time.Sleep(200 * time.Millisecond)
	}
}

// trouble causes one random fault of a path or a program.
func (c *chaos) trouble(random *rand.Rand) {
	pause := func(most int) { time.Sleep(time.Duration(random.IntN(most)) * time.Millisecond) }
	link := links[random.IntN(len(links))]
	drop := func(rule string) { drop(c.t, "add rule ip hole forward "+rule+" drop") }
	direction := []string{"iifname ", "oifname "}[random.IntN(2)] + link.ends[1].device
	switch kind := random.IntN(11); kind {
	case 0, 1: // an interface goes down, perhaps repeatedly
		for range 1 + kind*random.IntN(4) {
			output(c.t, "phone", "ip", "link", "set", link.device, "down")
			pause(1500 / (1 + 4*kind))
			c.restore(link.device)
			pause(300)
		}
	case 2: // both interfaces go down
		for _, l := range links {
			output(c.t, "phone", "ip", "link", "set", l.device, "down")
		}
		pause(2000)
		for _, l := range links {
			c.restore(l.device)
		}
	case 3: // all packets are lost
		hole(c.t, true)
		pause(6000)
		hole(c.t, false)
	case 4: // another rate, and loss
		e := link.ends[random.IntN(2)]
		limit(c.t, e, fmt.Sprint(1+random.IntN(80), "mbit"))
		drop(fmt.Sprintf("%s numgen random mod 1000 < %d", direction, random.IntN(200)))
	case 5: // the connections of the paths are reset
		output(c.t, "router", "nft", "add table ip cut; add chain ip cut forward { type filter hook forward priority 0; }; "+
			"add rule ip cut forward iifname "+link.ends[1].device+" meta l4proto tcp reject with tcp reset")
		pause(200)
		output(c.t, "router", "nft", "delete", "table", "ip", "cut")
	case 6, 7: // all packets of one direction are lost
		drop(direction)
		pause(6000)
		hole(c.t, false)
	case 8: // an interface gets another address
		address(c.t, link.device, link.network+".3")
		pause(1500)
		address(c.t, link.device, link.network+".2")
	case 9, 10: // a program is frozen, perhaps while a path is attached
		if random.IntN(2) == 0 {
			output(c.t, "phone", "ip", "link", "set", link.device, "down")
			c.restore(link.device)
			pause(20)
		}
		p := c.programs[[]string{"agent", "proxy"}[random.IntN(2)]]
		p.signal(c.t, syscall.SIGSTOP)
		pause([]int{1000, 14_000}[random.IntN(2)])
		p.signal(c.t, syscall.SIGCONT)
	}
	c.troubles++
	pause(700)
}

func (c *chaos) restore(device string) { restore(c.t, device) }

// rest ends all faults, or records that they continue.
func (c *chaos) rest(begin bool) {
	since := time.Time{}
	if begin {
		hole(c.t, false)
		for _, l := range links {
			c.restore(l.device)
			for _, e := range l.ends {
				limit(c.t, e, "60mbit")
			}
		}
		since = time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = since
}

// address replaces the address of an interface of the phone.
func address(t *testing.T, device, ip string) {
	t.Helper()
	output(t, "phone", "ip", "addr", "flush", "dev", device)
	output(t, "phone", "ip", "addr", "add", ip+"/24", "dev", device)
	restore(t, device)
}

// watch records the memory of the programs.
func (c *chaos) watch(stop <-chan struct{}, d time.Duration) {
	begun, told := time.Now(), time.Now()
	for !closed(stop) {
		for role := range c.programs {
			if s := c.sample(role); time.Since(begun) < d/2 {
				c.early[role] = max(c.early[role], s.memory)
			}
		}
		if time.Since(told) > time.Minute {
			told = time.Now()
			c.t.Logf("%v: %d connections, %d bytes; agent %v, proxy %v", time.Since(begun).Round(time.Second), c.jobs.Load(), c.bytes.Load(), c.sample("agent"), c.sample("proxy"))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (c *chaos) sample(role string) (s sample) {
	process := "/proc/" + pid(c.programs[role])
	descriptors, err := os.ReadDir(process + "/fd")
	if err != nil {
		c.t.Error(err)
	}
	text, err := os.ReadFile(process + "/statm")
	if err != nil {
		c.t.Error(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		c.t.Error(err)
	}
	s.descriptors, s.memory = len(descriptors), pages*int64(os.Getpagesize())
	return s
}

// quiet waits until no stream is open, both paths are attached, and no more connections
// end.
func (c *chaos) quiet() map[string]sample {
	c.t.Helper()
	found, same := map[string]sample{}, 0
	var last string
	eventually(c.t, "quiet after the traffic; "+last, func() bool {
		now := map[string]sample{}
		idle := true
		for role, socket := range c.sockets {
			r := statusOf(c.t, socket)
			s := c.sample(role)
			s.goroutines = r.Goroutines
			now[role] = s
			idle = idle && r.Connections.Open == 0 && len(r.Sessions) == 1 && r.Sessions[0].Streams == 0 &&
				len(r.Sessions[0].Paths) == 2 && r.Sessions[0].Memory == 0 && r.Sessions[0].Unsent == 0 && r.Sessions[0].Received == 0
		}
		if same++; !idle || now["agent"].goroutines != found["agent"].goroutines || now["proxy"].goroutines != found["proxy"].goroutines {
			same = 0
		}
		found = maps.Clone(now)
		time.Sleep(50 * time.Millisecond)
		return same > 10
	})
	return found
}

// again returns the bytes that were sent again after a path ended.
func (c *chaos) again() (bytes int64) {
	for _, socket := range c.sockets {
		for _, s := range statusOf(c.t, socket).Sessions {
			bytes += s.Counters.SentAgain
		}
	}
	return bytes
}
