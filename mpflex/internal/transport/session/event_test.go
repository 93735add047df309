package session

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

var errGivenUp = errors.New("given up")

// TestEvents: events are delivered in order, with the session unlocked, and all before
// Close returns.
func TestEvents(t *testing.T) {
	var k *pair
	var told []Event
	ready := make(chan struct{})
	k = newPair(t, Config{Log: func(e Event) {
		<-ready
		if _, of := k.agent.Status(), k.proxy.Status(); of.Paths == nil { // would block forever if they were locked
			t.Error("no status")
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		told = append(told, e)
	}}, 0)
	close(ready)
	const rounds = 20
	for range rounds {
		path := k.attach(3)
		path.Abandon(errGivenUp)
		<-path.Done()
	}
	k.attach(1)
	st, other := k.stream("x")
	k.agent.Report(Event{What: "mine"})
	why := errors.New("there is a reason")
	k.agent.End(why)
	if err := k.agent.Close(); err != nil {
		t.Fatal(err)
	}
	var reset *ResetError
	if _, err := io.ReadAll(st); !errors.As(err, &reset) || reset.Reason != SessionOver || !errors.Is(err, why) || !strings.Contains(err.Error(), "there is a reason") {
		t.Errorf("the stream ends with %v", err)
	}
	<-k.proxy.Done()
	_ = k.proxy.Close()
	if _, err := io.ReadAll(other); !errors.Is(err, ErrGoAway) {
		t.Errorf("the other side's stream ends with %v", err)
	}
	k.agent.Report(Event{What: "late"})
	k.mu.Lock()
	defer k.mu.Unlock()
	var ends []Event
	var own []string
	for _, e := range told {
		switch {
		case e.What == Over:
			ends = append(ends, e)
		case e.What == "mine" || errors.Is(e.Err, errGivenUp):
			own = append(own, e.What)
		}
	}
	if len(ends) != 2 || ends[0].Streams != 1 || ends[1].Streams != 1 {
		t.Errorf("%+v", ends)
	}
	if want := append(slices.Repeat([]string{Ended}, rounds), "mine"); !slices.Equal(own, want) {
		t.Errorf("told: %v", own)
	}
	for n := uint32(1); n <= rounds; n++ {
		at := func(what string) int {
			return slices.IndexFunc(told, func(e Event) bool { return e.What == what && e.Path == 3 && e.Incarnation == n })
		}
		if a, e := at(Attached), at(Ended); a < 0 || e < a {
			t.Errorf("incarnation %d: attached is event %d, ended %d", n, a, e)
		}
	}
}

// TestNoEventOfNothing: a session that was never used ends without an event.
func TestNoEventOfNothing(t *testing.T) {
	var told []Event
	s, err := New(Agent, Config{Log: func(e Event) { told = append(told, e) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || len(told) != 0 {
		t.Errorf("%v, %+v", err, told)
	}
}

// TestFarewellUnderLoad: go away arrives, even at a side that sends all the time.
func TestFarewellUnderLoad(t *testing.T) {
	for range 10 {
		// The window bounds the bytes that are queued before go away.
		k := newPair(t, Config{Window: 1 << 20, InitialWindow: 1 << 20}, 2)
		st, other := k.stream("x")
		go func() { _, _ = io.Copy(st, text(1, 1<<30)) }()
		go func() { _, _ = io.Copy(other, text(2, 1<<30)) }()
		go func() { _, _ = io.Copy(io.Discard, other) }()
		if _, err := io.CopyN(io.Discard, st, 1<<20); err != nil {
			t.Fatal(err)
		}
		if err := k.proxy.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-k.agent.Done():
		case <-time.After(10 * time.Second):
			t.Fatalf("the agent goes on: %+v", k.agent.Status().Paths)
		}
		if err := k.agent.Err(); !errors.Is(err, ErrGoAway) {
			t.Error(err)
		}
	}
}
