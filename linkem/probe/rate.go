package probe

import (
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"mplab/linkem/internal/system"
)

const (
	blastFactor    = 1.3  // times the expected rate: fills the queue, so that the link is never idle
	burstFactor    = 1.5  // times the expected rate: above the blast's own rate; only a burst after a stall is so fast
	discardedShare = 0.25 // of the time: the burst of a token bucket, a queue not yet filled
	fewestSamples  = 5    // arrivals after the discarded part
	mostGroups     = 15
	headStart      = 0.1 // of the duration, sent at once: the queue outlasts a stall of the sender
	blastPriority  = 5   // SCHED_FIFO priority: below the links of linkem, which must forward the blast
	mostSamples    = 200_000
	aimedSamples   = 100 // intended number of arrivals; on a slow link messages are smaller to reach it
	smallestBlast  = headBytes + udpOverhead
)

// sample is one arrival.
type sample struct {
	at    int64 // ns
	bytes int   // IP bytes
}

// deliveryRate returns the rate of arrivals in bit/s of IP bytes, or false if there are too few. It discards the first
// discardedShare of the time and splits the other arrivals into groups. The rate of a group is the bytes after its
// first arrival divided by the time from there to its last arrival. The result is the rate of the median group, so that
// a stall of the sender has no effect.
func deliveryRate(samples []sample) (float64, bool) {
	if len(samples) < fewestSamples {
		return 0, false
	}
	begin, end := samples[0].at, samples[len(samples)-1].at
	cut := begin + int64(discardedShare*float64(end-begin))
	first := 0
	for samples[first].at < cut {
		first++
	}
	kept := samples[first:]
	if len(kept) < fewestSamples || end <= kept[0].at {
		return 0, false
	}
	spacings := len(kept) - 1
	groups := min(mostGroups, max(spacings/fewestSamples, 1))
	var rates []float64
	for g := range groups {
		group := kept[g*spacings/groups : (g+1)*spacings/groups+1] // the last arrival starts the next group
		bytes := 0
		for _, s := range group[1:] {
			bytes += s.bytes
		}
		duration := max(group[len(group)-1].at-group[0].at, 1)
		rates = append(rates, float64(bytes)*8e9/float64(duration))
	}
	slices.Sort(rates)
	return quantile(rates, 0.5), true
}

// blastSize returns the message size of a blast in IP bytes. rate is in bit/s.
func blastSize(rate, seconds float64) int {
	return min(max(int(rate*seconds/8/aimedSamples), smallestBlast), largestMessage)
}

// blast calls send at an even pace for the duration and returns the number of messages. rate is in bit/s, size in IP
// bytes. It sends a head start, and messages delayed by a stall, at once.
func blast(rate float64, size int, duration time.Duration, send func() error) (sent int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Use a separate thread, which ends with the goroutine: it can sleep for less than the 1 ms of Go's timers, and
		// can have a priority.
		runtime.LockOSThread()
		system.TuneThread(blastPriority)
		sent, err = pace(float64(size)*8e9/rate, duration, send)
	}()
	<-done
	return sent, err
}

// pace calls send every interval ns.
func pace(interval float64, duration time.Duration, send func() error) (int, error) {
	start := time.Now()
	early := time.Duration(headStart * float64(duration))
	for n := 0; ; n++ {
		due := time.Duration(float64(n)*interval) - early
		if due >= duration-early {
			return n, nil
		}
		sleepPrecisely(due - time.Since(start))
		if time.Since(start) > 2*duration { // far too slow a machine: stop in bounded time
			return n, nil
		}
		if err := send(); err != nil {
			return n, err
		}
	}
}

// sleepPrecisely blocks the calling thread; it returns immediately if d is not positive.
func sleepPrecisely(d time.Duration) {
	if d <= 0 {
		return
	}
	t := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &t, nil) // a signal can end it early: harmless
}
