package integration

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
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
	chaosFor  = flag.Duration("chaos", 20*time.Second, "for how long TestChaos lets paths come and go")
	chaosSeed = flag.Uint64("seed", 0, "of TestChaos; 0: a new one, which is printed")
)

// TestChaos lets mixed traffic run through both programs while the paths go up
// and down at random: every byte is right, and nothing is left in the end.
func TestChaos(t *testing.T) {
	needLab(t)
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-chaos %v -seed %d", *chaosFor, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := newChaos(t, random.IntN(4) == 0)
	c.traffic(seed, time.Second, func(*rand.Rand) {}) // what is made once is there
	before := c.quiet()
	c.traffic(seed+1, *chaosFor, c.trouble)
	after := c.quiet()
	t.Logf("%d connections, %d bytes; %d troubles; %d of %d datagrams answered\nbefore: %v\nafter:  %v",
		c.jobs.Load(), c.bytes.Load(), c.troubles, c.answered, c.sent, before, after)
	for role, b := range before {
		a := after[role]
		// Descriptors of paths: each side has a socket for each, whenever it is looked at.
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

// chaos is both programs with what happens to them.
type chaos struct {
	t              *testing.T
	programs       map[string]*program
	sockets        map[string]string
	jobs, bytes    atomic.Int64
	troubles       int
	sent, answered int
	early          map[string]int64 // most memory in the first half
}

// sample is what a process has.
type sample struct {
	goroutines, descriptors int
	memory                  int64 // resident, bytes
}

func newChaos(t *testing.T, plain bool) *chaos {
	dir := t.TempDir()
	c := &chaos{t: t, early: map[string]int64{}, sockets: map[string]string{}, programs: map[string]*program{}}
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
	for _, link := range links {
		for _, end := range link.ends {
			output(t, end.node, "tc", "qdisc", "replace", "dev", end.device, "root", "tbf", "rate", "60mbit", "burst", "64kb", "latency", "60ms")
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
	device string
	ends   [2]end
}{
	{"wlan0", [2]end{{"phone", "wlan0"}, {"router", "wlan"}}},
	{"rmnet0", [2]end{{"phone", "rmnet0"}, {"router", "rmnet"}}},
}

// traffic runs for a time, and until the last connection has ended.
func (c *chaos) traffic(seed uint64, d time.Duration, trouble func(*rand.Rand)) {
	const applications = 12
	c.t.Helper()
	stop := make(chan struct{})
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
	}
	if !closed(stop) && timer.Stop() {
		close(stop)
	}
	c.calm()
	all.Wait()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(10 * time.Millisecond):
		return false
	}
}

// application is one connection.
func (c *chaos) application(j job) {
	conn, err := dialFrom(c.t, "phone", web)
	for range 100 {
		if !errors.Is(err, syscall.ENETUNREACH) { // the phone itself knows no route while both interfaces are down
			break
		}
		time.Sleep(100 * time.Millisecond)
		conn, err = dialFrom(c.t, "phone", web)
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
	local := conn.LocalAddr()
	if err := j.do(conn); err != nil {
		c.t.Errorf("%+v (%v): %v%s", j, local, err, c.told(local.String()))
	}
	c.jobs.Add(1)
	c.bytes.Add(j.Up + j.Down)
}

// told is what both programs logged of a connection.
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

// trouble is one of the things that happen to paths, for a while.
func (c *chaos) trouble(random *rand.Rand) {
	pause := func(most int) { time.Sleep(time.Duration(random.IntN(most)) * time.Millisecond) }
	link := links[random.IntN(len(links))]
	switch kind := random.IntN(6); kind {
	case 0, 1: // an interface goes, perhaps again and again
		for range 1 + kind*random.IntN(4) {
			output(c.t, "phone", "ip", "link", "set", link.device, "down")
			pause(1500 / (1 + 4*kind))
			c.restore(link.device)
			pause(300)
		}
	case 2: // both go
		for _, l := range links {
			output(c.t, "phone", "ip", "link", "set", l.device, "down")
		}
		pause(2000)
		for _, l := range links {
			c.restore(l.device)
		}
	case 3: // everything is lost
		hole(c.t, true)
		pause(6000)
		hole(c.t, false)
	case 4: // another rate, and loss
		e := link.ends[random.IntN(2)]
		rate := fmt.Sprint(1+random.IntN(80), "mbit")
		output(c.t, e.node, "tc", "qdisc", "replace", "dev", e.device, "root", "tbf", "rate", rate, "burst", "64kb", "latency", "60ms")
	case 5: // the connections of the paths are reset
		output(c.t, "router", "nft", "add table ip cut; add chain ip cut forward { type filter hook forward priority 0; }; "+
			"add rule ip cut forward iifname "+link.ends[1].device+" meta l4proto tcp reject with tcp reset")
		pause(200)
		output(c.t, "router", "nft", "delete", "table", "ip", "cut")
	}
	c.troubles++
	pause(700)
}

func (c *chaos) restore(device string) { restore(c.t, device) }

// calm ends all trouble.
func (c *chaos) calm() {
	hole(c.t, false)
	for _, l := range links {
		c.restore(l.device)
	}
}

// watch notes how much memory the programs have.
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

// quiet waits until no stream is open and both paths are, and nothing ends any
// more.
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

// again is how many bytes were sent again after a path had ended.
func (c *chaos) again() (bytes int64) {
	for _, socket := range c.sockets {
		for _, s := range statusOf(c.t, socket).Sessions {
			bytes += s.Counters.SentAgain
		}
	}
	return bytes
}
