package probe

import (
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"mplab/linkem/internal/system"
)

const (
	blastFactor    = 1.3  // of the expected rate: fills the queue, so that the link is never idle
	discardedShare = 0.25 // of the time from first to last arrival: the burst of a token bucket, a queue not yet filled
	fewestSamples  = 5    // arrivals behind the discarded part
	mostGroups     = 15
	headStart      = 0.1 // of the duration, sent at once: the queue outlasts a stall of the sender
	blastPriority  = 5   // of SCHED_FIFO: below the links of linkem, which have to carry it
	mostSamples    = 200_000
	aimedSamples   = 100 // arrivals of a blast; messages get smaller to have them on a slow link
	smallestBlast  = headBytes + udpOverhead
)

// sample is one arrival.
type sample struct {
	at    int64 // ns
	bytes int   // IP bytes
}

// deliveryRate gives the rate of arrivals in bit/s of IP bytes. Behind the first discardedShare of the time, the arrivals
// are cut into groups; the rate of a group is what came after its first arrival by the time from there to its last; the
// median group counts, so that a moment in which the sender did not keep the link busy does not. False if there are too
// few arrivals.
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
		group := kept[g*spacings/groups : (g+1)*spacings/groups+1] // the last arrival is the first of the next group
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

// blastSize gives the IP bytes of a message for a blast of so many bit/s and seconds.
func blastSize(rate, seconds float64) int {
	return min(max(int(rate*seconds/8/aimedSamples), smallestBlast), largestMessage)
}

// blast calls send at an even pace for the duration: rate in bit/s, messages of size IP bytes. A head start, and what a
// stall delayed, goes out at once. It gives the number of messages sent.
func blast(rate float64, size int, duration time.Duration, send func() error) (sent int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// A thread of its own, which ends with the goroutine: it can sleep for less than the 1 ms of Go's timers, and may
		// have a priority.
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
		if time.Since(start) > 2*duration { // far too slow a machine: end in bounded time
			return n, nil
		}
		if err := send(); err != nil {
			return n, err
		}
	}
}

// sleepPrecisely sleeps the calling thread; negative: not at all.
func sleepPrecisely(d time.Duration) {
	if d <= 0 {
		return
	}
	t := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &t, nil) // cut short by a signal: the next one is paced again
}
