package ifaces

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is the maximum time that a test waits for an event.
const patience = 30 * time.Second

// watcher follows a set as its single reader.
type watcher struct {
	*Set
	t    *testing.T
	last []Interface
	stop context.CancelFunc
}

func watch(t *testing.T, patterns ...string) *watcher {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	set, err := Watch(ctx, patterns)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Polling(); err != nil {
		t.Fatalf("there are no notices: %v", err)
	}
	w := &watcher{set, t, set.Snapshot(), stop}
	t.Cleanup(func() { stop(); <-set.Done() })
	return w
}

// describe formats events: up wlan0 [10.0.0.2] v4.
func describe(events []Event) string {
	var all []string
	for _, e := range events {
		text := fmt.Sprintf("%v %s %v", e.Kind, e.Interface.Name, e.Interface.Addrs)
		if e.Interface.DefaultIPv4 {
			text += " v4"
		}
		if e.Interface.DefaultIPv6 {
			text += " v6"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// next returns the next events.
func (w *watcher) next() string {
	w.t.Helper()
	for {
		select {
		case <-w.Changed():
		case <-time.After(patience):
			w.t.Fatal("nothing happens")
		}
		now := w.Snapshot()
		events := Diff(w.last, now)
		w.last = now
		if len(events) > 0 {
			return describe(events)
		}
	}
}

// expect runs lines of ip(8) and waits for the expected events.
func (w *watcher) expect(want string, lines ...string) {
	w.t.Helper()
	ip(w.t, lines...)
	if got := w.next(); got != want {
		w.t.Errorf("%s\ngot  %s\nwant %s", strings.Join(lines, "; "), got, want)
	}
}

func TestLifeOfAnInterface(t *testing.T) {
	makeLink(t, "wlan0")
	w := watch(t, "wlan*")
	if len(w.last) != 0 {
		t.Errorf("without an address it is there: %+v", w.last)
	}
	w.expect("up wlan0 [10.7.0.2]", "addr add 10.7.0.2/24 dev wlan0")
	w.expect("routes wlan0 [10.7.0.2] v4", "route add default via 10.7.0.1 dev wlan0")
	w.expect("routes wlan0 [10.7.0.2]", "route del default dev wlan0")
	w.expect("routes wlan0 [10.7.0.2] v4", "route add default via 10.7.0.1 dev wlan0 table 1002")
	w.expect("addresses wlan0 [10.7.0.2 10.7.0.3] v4", "addr add 10.7.0.3/24 dev wlan0")
	w.expect("down wlan0 [10.7.0.2 10.7.0.3] v4", "link set wlan0 down")
	w.expect("up wlan0 [10.7.0.2 10.7.0.3]", "link set wlan0 up") // its routes were removed with it
	w.expect("addresses wlan0 [10.7.0.2]", "addr del 10.7.0.3/24 dev wlan0")
	w.expect("down wlan0 [10.7.0.2]", "link set peer-wlan0 down") // no carrier
	w.expect("up wlan0 [10.7.0.2]", "link set peer-wlan0 up")
	w.expect("down wlan0 [10.7.0.2]", "addr flush dev wlan0")
	w.expect("up wlan0 [10.7.0.4]", "addr add 10.7.0.4/24 dev wlan0")
	w.expect("down wlan0 [10.7.0.4]", "link set wlan0 down")
	ip(t, "link set wlan0 name wlan9")
	w.expect("up wlan9 [10.7.0.4]", "link set wlan9 up")
	w.expect("down wlan9 [10.7.0.4]", "link del wlan9")
}

func TestIPv6(t *testing.T) {
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		t.Skip("this machine has no IPv6")
	}
	makeLink(t, "wlan0")
	w := watch(t, "wlan0")
	// The link-local address, which exists by now, is ignored.
	w.expect("up wlan0 [fd07::2]", "addr add fd07::2/64 dev wlan0 nodad")
	w.expect("routes wlan0 [fd07::2] v6", "route add default via fd07::1 dev wlan0")
	w.expect("addresses wlan0 [10.7.0.2 fd07::2] v6", "addr add 10.7.0.2/24 dev wlan0")
	w.expect("addresses wlan0 [10.7.0.2 fd07::2 fd07::3] v6", "addr add fd07::3/64 dev wlan0") // after duplicate address detection
}

func TestWhichAreWatched(t *testing.T) {
	for _, name := range []string{"wlan0", "rmnet1", "rmnet0", "eth0"} {
		makeLink(t, name)
		ip(t, "addr add 10.7.0.2/24 dev "+name)
	}
	ip(t, "link set lo up")
	for want, patterns := range map[string][]string{
		"rmnet0 rmnet1 wlan0":      {"rmnet*", "wlan0"},
		"wlan0 rmnet0 rmnet1":      {"wlan0", "rmnet*"},
		"rmnet1 eth0 rmnet0 wlan0": {"rmnet[1-9]", "*0", "nothing"},
		"eth0 rmnet0 rmnet1 wlan0": nil,
		"eth0":                     {"l*", "e*"},
		"lo eth0":                  {"lo", "eth0"},
	} {
		var names []string
		for _, i := range watch(t, patterns...).last {
			names = append(names, i.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%v: %s, want %s", patterns, got, want)
		}
	}
	if _, err := Watch(t.Context(), []string{"wlan["}); !errors.Is(err, path.ErrBadPattern) {
		t.Errorf("a bad pattern: %v", err)
	}
}

// TestFlapping checks that an interface that flaps at maximum speed causes only as many
// reads as fit into the time, and that in the end the set is correct.
func TestFlapping(t *testing.T) {
	makeLink(t, "wlan0")
	ip(t, "addr add 10.7.0.2/24 dev wlan0")
	w := watch(t, "wlan0")
	var lines []string
	for range 500 {
		lines = append(lines, "link set wlan0 down", "link set wlan0 up")
	}
	start := time.Now()
	ip(t, append(lines, "link set wlan0 down")...)
	w.until("down", func(now []Interface) bool { return len(now) == 0 })
	ip(t, append(lines, "addr add 10.7.0.3/24 dev wlan0")...)
	w.until("up", func(now []Interface) bool { return len(now) == 1 && len(now[0].Addrs) == 2 })
	most := int(time.Since(start)/restTime) + 2
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readings > most {
		t.Errorf("%d readings where %d fit into the time", w.readings, most)
	}
}

// until waits until the set satisfies a condition.
func (w *watcher) until(what string, holds func([]Interface) bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !holds(w.Snapshot()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: never, but %+v", what, w.Snapshot())
		}
	}
}

// TestManyChanges makes more notifications than the socket holds, and a large
// multi-part answer.
func TestManyChanges(t *testing.T) {
	const count = 2000
	makeLink(t, "wlan0")
	w := watch(t, "wlan0")
	var lines []string
	for i := range count {
		lines = append(lines, fmt.Sprintf("addr add 10.8.%d.%d/32 dev wlan0", i/250, 1+i%250))
	}
	ip(t, lines...)
	w.until("all addresses", func(now []Interface) bool { return len(now) == 1 && len(now[0].Addrs) == count })
	if now := w.Snapshot()[0]; !slices.IsSortedFunc(now.Addrs, netip.Addr.Compare) {
		t.Errorf("not sorted: %v", now.Addrs)
	}
	w.until("still the same", func(now []Interface) bool { return len(now) == 1 && len(now[0].Addrs) == count })
	ip(t, "addr flush dev wlan0")
	w.until("none", func(now []Interface) bool { return len(now) == 0 })
	if err := w.Polling(); err != nil {
		t.Errorf("it gave up the notices: %v", err)
	}
}

// TestTornLists checks that a list that changes while it is read contains no
// duplicates.
func TestTornLists(t *testing.T) {
	makeLink(t, "wlan0")
	var lines, changes []string
	for i := range 2000 {
		lines = append(lines, fmt.Sprintf("addr add 10.8.%d.%d/32 dev wlan0", i/250, 1+i%250))
		changes = append(changes, fmt.Sprintf("addr add 10.9.%d.%d/32 dev wlan0", i/250, 1+i%250), fmt.Sprintf("addr del 10.8.%d.%d/32 dev wlan0", i/250, 1+i%250))
	}
	ip(t, lines...)
	reader, err := newReader()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.close()
	changing := make(chan error, 1)
	go func() { changing <- tryIP(changes...) }()
	for done := false; !done; {
		select {
		case err := <-changing:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
		}
		found, err := reader.read(func(name string, _ bool) bool { return name == "wlan0" })
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		all := found[0].Addrs
		if different := len(slices.Compact(slices.Clone(all))); different != len(all) {
			t.Fatalf("%d addresses, %d of them different", len(all), different)
		}
	}
}

// descriptors returns the number of open descriptors.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestNothingIsLeft(t *testing.T) {
	makeLink(t, "wlan0")
	watch(t).stop() // resources that are created once now exist
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	for i := range 20 {
		w := watch(t)
		ip(t, fmt.Sprintf("addr add 10.7.0.%d/24 dev wlan0", i+1))
		if i%4 == 0 { // ended while it waits for the next notification
			w.next()
			time.Sleep(3 * restTime)
		}
		w.stop()
		<-w.Done()
	}
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > goroutines || descriptors(t) > files; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines of %d, %d descriptors of %d", runtime.NumGoroutine(), goroutines, descriptors(t), files)
		}
	}
}

// TestWithoutNotices checks that a program that must not bind a netlink socket, like an
// application on Android, still finds the changes.
func TestWithoutNotices(t *testing.T) {
	makeLink(t, "wlan0")
	ip(t, "addr add 10.7.0.2/24 dev wlan0")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), restrictedVariable+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	lines := bufio.NewScanner(stdout)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("got  %q\nwant %q", lines.Text(), want)
		}
	}
	expect("polling: netlink: bind: permission denied")
	expect("up wlan0 [10.7.0.2]")
	ip(t, "addr add 10.7.0.3/24 dev wlan0")
	expect("addresses wlan0 [10.7.0.2 10.7.0.3]")
	ip(t, "route add default via 10.7.0.1 dev wlan0")
	expect("routes wlan0 [10.7.0.2 10.7.0.3] v4")
	ip(t, "link set wlan0 down")
	expect("down wlan0 [10.7.0.2 10.7.0.3] v4")
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func BenchmarkRead(b *testing.B) {
	makeLink(b, "wlan0")
	ip(b, "addr add 10.7.0.2/24 dev wlan0")
	reader, err := newReader()
	if err != nil {
		b.Fatal(err)
	}
	defer reader.close()
	b.ReportAllocs()
	for b.Loop() {
		if found, err := reader.read(func(string, bool) bool { return true }); err != nil || len(found) == 0 {
			b.Fatal(found, err)
		}
	}
}
