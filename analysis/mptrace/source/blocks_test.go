package source

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"mplab/analysis/mptrace/packet"
)

func TestAheadIsTheSame(t *testing.T) {
	names := []string{bulk(t, "a.pcapng", "wlan0", 1, 20_000, 0), bulk(t, "b.pcapng", "rmnet0", 2, 20_000, 3_000)}
	said := func(threads int) string {
		var b strings.Builder
		s := Open(names, Options{})
		for packets := range s.Blocks(threads) {
			for i := range packets {
				fmt.Fprintln(&b, packets[i].TimeNS, packets[i].Iface, packets[i].Seq, packets[i].DataAck, len(packets[i].Options))
			}
		}
		fmt.Fprintln(&b, s.Files(), s.Interfaces())
		return b.String()
	}
	if said(1) != said(2) {
		t.Error("another sequence")
	}
}

// TestStopEarly: when the consumer stops, decoding has stopped too.
func TestStopEarly(t *testing.T) {
	name := bulk(t, "a.pcapng", "wlan0", 1, 20_000, 0)
	before := runtime.NumGoroutine()
	for _, threads := range []int{1, 2} {
		for stopAt := range 3 {
			s, blocks := Open([]string{name}, Options{}), 0
			for range s.Blocks(threads) {
				if blocks++; blocks > stopAt {
					break
				}
			}
			s.Close()
			s.Close()
			if row := s.Files()[0]; blocks != stopAt+1 || row.Partial || len(row.Interfaces) != 1 {
				t.Errorf("%d threads: %d blocks, %+v", threads, blocks, row)
			}
		}
	}
	for range 100 { // a goroutine is counted until just after its last word
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestPanicIsNotLost: neither that of decoding nor that of the consumer.
func TestPanicIsNotLost(t *testing.T) {
	name := bulk(t, "a.pcapng", "wlan0", 1, 20_000, 0)
	for _, threads := range []int{1, 2} {
		seen := 0
		s := Open([]string{name}, Options{Rewrite: func(*packet.Packet) {
			if seen++; seen == 5_000 {
				panic("rewriting failed")
			}
		}})
		if got := panicOf(func() {
			for range s.Blocks(threads) {
			}
		}); !strings.Contains(got, "rewriting failed") {
			t.Errorf("%d threads, decoding: %q", threads, got)
		}
		s.Close()

		s = Open([]string{name}, Options{})
		if got := panicOf(func() {
			for range s.Blocks(threads) {
				panic("the consumer failed")
			}
		}); got != "the consumer failed" {
			t.Errorf("%d threads, consumer: %q", threads, got)
		}
		s.Close()
	}
}

func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}
