package session

import (
	"io"
	"testing"
	"time"
)

// TestStatusCountsAllIncarnations: the counters of a path continue when it is attached
// again. They remain when the path or its session has ended.
func TestStatusCountsAllIncarnations(t *testing.T) {
	k := newPair(t, Config{}, 2)
	st, other := k.stream("first")
	read := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, other)
		read <- n
	}()
	const rounds, size = 6, 1 << 20
	var last Status
	for round := range rounds {
		if _, err := st.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if round%2 == 1 {
			k.attach(uint8(round / 2 % 2))
		}
		now := k.agent.Status()
		check(t, k, last, now)
		last = now
	}
	if err := st.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n := <-read; n != rounds*size+int64(len("first")) {
		t.Errorf("%d bytes arrived", n)
	}
	want := k.agent.Status()
	check(t, k, last, want)
	if got := k.proxy.Status().BytesIn; got < rounds*size || got > want.BytesOut {
		t.Errorf("the proxy counts %d bytes, the agent %d", got, want.BytesOut)
	}
	if len(want.Paths) != 2 || want.Paths[0].Incarnation != 3 || want.Paths[1].Incarnation != 2 || len(want.Gone) != 0 {
		t.Errorf("%+v", want)
	}

	for _, p := range k.attached(0) {
		p.Abandon(errGivenUp)
	}
	got := k.agent.Status()
	if len(got.Paths) != 1 || got.Paths[0].ID != 1 || len(got.Gone) != 1 || got.Gone[0].ID != 0 || got.Gone[0].Incarnation != 3 {
		t.Errorf("without path 0: %+v", got)
	}
	if got.BytesOut < want.BytesOut || got.Gone[0].BytesOut < want.Paths[0].BytesOut {
		t.Errorf("counters fell: %+v, before %+v", got, want)
	}
	want = got
	_ = k.agent.Close()
	for range 500 { // reading ends a moment later
		if got = k.agent.Status(); len(k.unread()) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(got.Paths) != 0 || len(got.Gone) != 2 || got.BytesOut < want.BytesOut || got.Gone[0].BytesOut != want.Gone[0].BytesOut {
		t.Errorf("at the end %+v, before %+v", got, want)
	}
	if left := k.unread(); len(left) != 0 {
		t.Errorf("%d paths are still read", len(left))
	}
}

// check compares the counters of the agent's session, before and now, with each other
// and with those of its only stream.
func check(t *testing.T, k *pair, before, now Status) {
	t.Helper()
	streams := k.agent.Streams()
	if len(streams) != 1 {
		t.Fatalf("%d streams", len(streams))
	}
	later := k.agent.Status()
	carried := int64(0)
	for _, c := range streams[0].Paths {
		carried += c.Out + c.Copies
	}
	if carried < now.BytesOut || carried > later.BytesOut {
		t.Errorf("the paths carried %d bytes of the stream, and %d to %d in all", carried, now.BytesOut, later.BytesOut)
	}
	for _, old := range before.Paths {
		for _, row := range append(now.Paths, now.Gone...) {
			if row.ID == old.ID && (row.BytesOut < old.BytesOut || row.MessagesOut < old.MessagesOut || row.Framed < old.Framed) {
				t.Errorf("counters fell: %+v, before %+v", row, old)
			}
		}
	}
	if now.BytesOut < before.BytesOut || now.BytesIn < before.BytesIn {
		t.Errorf("counters fell: %+v, before %+v", now, before)
	}
}

// attached returns the agent's connections of a path.
func (k *pair) attached(id uint8) (found []*Path) {
	k.agent.mu.Lock()
	defer k.agent.mu.Unlock()
	for _, p := range k.agent.paths {
		if p.link.ID == id {
			found = append(found, p)
		}
	}
	return found
}

// unread returns the agent's ended connections that are still read.
func (k *pair) unread() []*Path {
	k.agent.mu.Lock()
	defer k.agent.mu.Unlock()
	return append([]*Path(nil), k.agent.history.ending...)
}

func TestAgesOfStreams(t *testing.T) {
	k := newPair(t, Config{}, 1)
	st, other := k.stream("first")
	time.Sleep(30 * time.Millisecond)
	quiet := st.Status()
	if quiet.AgeS < 0.03 || quiet.IdleS > quiet.AgeS {
		t.Errorf("%+v", quiet)
	}
	if _, err := other.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(st, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if now := st.Status(); now.AgeS-now.IdleS < quiet.AgeS-quiet.IdleS+0.01 || now.AgeS < quiet.AgeS {
		t.Errorf("%+v after the answer, before %+v", now, quiet)
	}
	if st.Session() != k.agent || other.Session() != k.proxy {
		t.Error("streams do not know their sessions")
	}
}
