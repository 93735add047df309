package linkem

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	blastFactor    = 1.3  // of the expected rate: fills the queue, so that the link is never idle
	discardedShare = 0.25 // of the time from first to last arrival: the burst of a token bucket, a queue not yet filled
	fewestSamples  = 5    // arrivals behind the discarded part
	mostSamples    = 200_000
	aimedSamples   = 100 // arrivals of a blast; messages get smaller to have them on a slow link
	smallestBlast  = probeHead + udpOverhead
)

// sample is one arrival.
type sample struct {
	at    int64 // ns
	bytes int   // IP bytes
}

// deliveryRate gives the rate of arrivals in bit/s of IP bytes, behind the first discardedShare of the time: what came
// after the first arrival there, by the time from it to the last. False if there are too few.
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
	duration := end - kept[0].at
	if len(kept) < fewestSamples || duration <= 0 {
		return 0, false
	}
	bytes := 0
	for _, s := range kept[1:] {
		bytes += s.bytes
	}
	return float64(bytes) * 8e9 / float64(duration), true
}

// blastSize gives the IP bytes of a message for a blast of so many bit/s and seconds.
func blastSize(rate, seconds float64) int {
	return min(max(int(rate*seconds/8/aimedSamples), smallestBlast), largestProbe)
}

// blast calls send at an even pace for the duration: rate in bit/s, messages of size IP bytes. What a stall delayed is
// made up for at once. It gives the number of messages sent.
func blast(rate float64, size int, duration time.Duration, send func() error) (int, error) {
	runtime.LockOSThread() // a thread can sleep for less than the 1 ms of Go's timers
	defer runtime.UnlockOSThread()
	interval := float64(size) * 8e9 / rate // ns
	start := time.Now()
	for n := 0; ; n++ {
		due := time.Duration(float64(n) * interval)
		if due >= duration {
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
