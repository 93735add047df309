package status

import (
	"encoding/json"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"mplab/internal/testkit"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

// pair returns both ends of a session with one path, over TCP on loopback.
func pair(t *testing.T) (agent, proxy *session.Session) {
	t.Helper()
	dialed, accepted := testkit.Pair(t)
	return end(t, session.Agent, dialed), end(t, session.Proxy, accepted)
}

func end(t *testing.T, role session.Role, conn *net.TCPConn) *session.Session {
	t.Helper()
	s, err := session.New(role, session.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Attach(session.Link{Conn: conn, TCP: conn, Incarnation: 1, Name: "lo"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// send sends n bytes over a new stream and waits until it is over.
func send(t *testing.T, from, to *session.Session, n int) {
	t.Helper()
	st, err := from.Open()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = st.Write(make([]byte, n))
		_ = st.CloseWrite()
	}()
	other, err := to.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.Copy(io.Discard, other); err != nil || got != int64(n) {
		t.Fatalf("%d of %d bytes, %v", got, n, err)
	}
	_ = other.Close()
	_, _ = io.Copy(io.Discard, st)
	_ = st.Close()
	for range 2000 {
		if from.Status().Streams == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the stream is not over")
}

// log holds records in the form in which a log is read.
type log struct {
	t       *testing.T
	mu      sync.Mutex
	records []Record
}

func (l *log) write(record any) {
	line, err := json.Marshal(record)
	var r Record
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		l.t.Error(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
}

func (l *log) now() []Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.records[:len(l.records):len(l.records)]
}

// until waits for a record of all of a session's traffic.
func (l *log) until(s *session.Session) []Record {
	l.t.Helper()
	for range 2000 {
		status := s.Status()
		if got := l.now(); len(got) > 0 && got[len(got)-1].BytesOut == status.BytesOut && got[len(got)-1].BytesIn == status.BytesIn {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.t.Fatalf("no record of %+v", s.Status())
	return nil
}

func TestLogWhileThereIsTraffic(t *testing.T) {
	agent, proxy := pair(t)
	const every = 20 * time.Millisecond
	got := &log{t: t}
	done := make(chan bool)
	go func() {
		Log(Live{ID: wire.SessionID{0xab}, Client: "phone", Session: agent}, every, got.write)
		close(done)
	}()
	time.Sleep(5 * every)
	if early := got.now(); len(early) != 0 {
		t.Errorf("records before there was traffic: %+v", early)
	}
	const size = 300_000
	send(t, agent, proxy, size)
	first := got.until(agent)
	time.Sleep(10 * every)
	if idle := got.now(); len(idle) != len(first) {
		t.Errorf("%d records of an idle session: %+v", len(idle)-len(first), idle[len(first):])
	}
	send(t, agent, proxy, size)
	second := got.until(agent)
	if len(second) <= len(first) {
		t.Errorf("%d records, then %d", len(first), len(second))
	}
	_ = agent.Close()
	<-done
	all := got.now()
	if len(all) != len(second)+1 {
		t.Errorf("%d records, %d before the end", len(all), len(second))
	}
	last := all[len(all)-1]
	if !last.Final || last.BytesOut < 2*size || last.Ended != 2 || len(last.Gone) != 1 || last.Gone[0].Name != "lo" || last.Gone[0].BytesOut != last.BytesOut {
		t.Errorf("%+v", last)
	}
	for i, r := range all {
		if r.Event != "status" || r.ID != "ab0000000000" || r.Client != "phone" || r.T == 0 || r.Final != (i == len(all)-1) {
			t.Errorf("record %d: %+v", i, r)
		}
		if i > 0 && (r.T < all[i-1].T || r.BytesOut < all[i-1].BytesOut) {
			t.Errorf("counters fell: %+v, before %+v", r, all[i-1])
		}
	}
}

func TestLogOfASessionThatDidNothing(t *testing.T) {
	agent, _ := pair(t)
	_ = agent.Close()
	got := &log{t: t}
	Log(Live{Session: agent}, time.Hour, got.write)
	if all := got.now(); len(all) != 1 || !all[0].Final || all[0].BytesOut != 0 {
		t.Errorf("%+v", all)
	}
}
