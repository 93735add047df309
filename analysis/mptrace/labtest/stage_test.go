package labtest_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mplab/analysis/mptrace/labtest"
)

// stage is a lab in which a scenario runs, with its true values.
type stage struct {
	*labtest.Lab
	*testing.T
	listener *net.TCPListener
	truth    truth
	pairs    []*labtest.Pair
}

const (
	port         = 4000
	closedPort   = 4001
	scenarioTime = 20 * time.Second
	bottleneck   = 60_000 // bytes
)

// play runs a scenario and captures it into a directory.
func play(t *testing.T, s scenario, dir string) *truth {
	t.Helper()
	if err := labtest.Missing(); err != nil {
		t.Skip(err)
	}
	lab, err := labtest.New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lab.Close)
	if !s.options.Direct {
		lab.Paths[labtest.WLAN].Shape(4*time.Millisecond, 40, bottleneck)
		lab.Paths[labtest.RMNET].Shape(12*time.Millisecond, 20, bottleneck)
	}
	st := &stage{Lab: lab, T: t, truth: truth{Name: s.name, What: s.what, Kernel: kernel(), Rows: []rowTruth{}}}
	st.truth.Views = map[string][]string{}
	for view, names := range map[string][2]string{"client": labtest.ClientInterfaces, "server": labtest.ServerInterfaces} {
		for _, name := range names {
			st.truth.Views[view] = append(st.truth.Views[view], fmt.Sprintf("%s-%s.pcapng", s.name, name))
		}
	}
	st.listen(true)
	stop, err := lab.Capture(dir, s.name)
	if err != nil {
		t.Fatal(err)
	}
	s.run(st)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for i, p := range st.pairs {
		for direction := range 2 {
			st.truth.Connections[i].Bytes[direction] = p.Counts(direction)
		}
	}
	return &st.truth
}

func kernel() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}

// listen replaces the listener. It listens on all addresses, because Linux accepts joins only on addresses with a
// listener.
func (s *stage) listen(multipath bool) {
	s.Helper()
	if s.listener != nil {
		_ = s.listener.Close()
	}
	var err error
	if s.listener, err = s.Listen(netip.AddrPortFrom(netip.IPv6Unspecified(), port), multipath); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = s.listener.Close() })
}

// connect opens a connection with the expected column values.
func (s *stage) connect(d labtest.Dial, expect columns) *labtest.Pair {
	s.Helper()
	if !d.To.IsValid() {
		d.To = netip.AddrPortFrom(labtest.Server4[labtest.WLAN], port)
	}
	p, err := s.Connect(s.listener, d)
	if err != nil {
		s.Fatal(err)
	}
	p.Deadline(scenarioTime)
	s.Cleanup(p.Abort)
	nth := 0
	for _, c := range s.truth.Connections {
		if c.ClientPort == p.ClientPort {
			nth++
		}
	}
	s.pairs = append(s.pairs, p)
	s.truth.Connections = append(s.truth.Connections, connectionTruth{ClientPort: p.ClientPort, Nth: nth, Expect: expect})
	return p
}

// multipath opens a connection and waits for its second subflow.
func (s *stage) multipath(expect columns) *labtest.Pair {
	s.Helper()
	return s.joined(labtest.Dial{Multipath: true}, expect)
}

func (s *stage) joined(d labtest.Dial, expect columns) *labtest.Pair {
	s.Helper()
	p := s.connect(d, expect)
	s.must(p.Exchange(1000, 2000), p.WaitSubflows(1))
	time.Sleep(80 * time.Millisecond) // until the third packet of the join is acknowledged
	return p
}

// backup opens a connection whose second subflow is a backup, which Linux uses when the path of the first one is lost.
func (s *stage) backup(expect columns) *labtest.Pair {
	s.Helper()
	s.must(s.Client.IP(fmt.Sprintf("mptcp endpoint add %s dev rmnet0 subflow backup", labtest.Client4[labtest.RMNET])))
	return s.multipath(expect)
}

// row adds an expectation about the rows of a table.
func (s *stage) row(r rowTruth) { s.truth.Rows = append(s.truth.Rows, r) }

// event adds an expectation about an event of a direction.
func (s *stage) event(name, direction string, expect columns) {
	s.row(rowTruth{Table: "events", Where: columns{"event": name, "direction": direction}, Expect: expect})
}

func (s *stage) must(errs ...error) {
	s.Helper()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
}

// during starts f, which transfers bytes, and runs the other functions at the same time.
func (s *stage) during(f func() error, after time.Duration, meanwhile ...func() error) {
	s.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	time.Sleep(after)
	for _, m := range meanwhile {
		s.must(m())
	}
	s.must(<-done)
}

func captures(dir string, names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(dir, name)
	}
	return paths
}
