package workload

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"mplab/bench/mpflex/origin"
	"mplab/internal/netx"
)

// Env is the environment of a workload.
type Env interface {
	Dial(ctx context.Context) (net.Conn, error)
	KillWiFi() error
	ReviveWiFi() error
	// Observe is called with one connection of a run that has all its bytes and is still open.
	Observe(conn net.Conn)
	// Seed returns the seed of the next file.
	Seed() uint64
}

// Labels of samples: the measured part of a workload.
const (
	LabelFile   = "file"
	LabelBundle = "bundle" // also for sequences
	LabelShort  = "short"  // file during a bulk transfer
	LabelBulk   = "bulk"   // the bulk transfer itself
	LabelDies   = "dies"   // file during which WiFi dies
	LabelDead   = "dead"   // files while WiFi is dead
	LabelBack   = "back"   // file after WiFi's return
	LabelRate   = "rate"
)

const (
	firstShort = time.Second            // after the start of the bulk transfer
	shortPause = 200 * time.Millisecond // between two of them

	dieAfter        = 0.3 // time of WiFi's death, relative to the limit
	deadFiles       = 3
	deadSize        = 50_000
	deadTimeout     = 10 * time.Second
	restAfterReturn = 4 * time.Second
	backSize        = 2_000_000
)

// Sample is one measured time. For a failed sample, it is the time until the failure.
type Sample struct {
	Label       string  `json:"label"`
	Bytes       int     `json:"bytes"` // of the applications, over all files
	Ms          float64 `json:"ms"`    // from before the connect to the last byte, or to the answer to an upload
	FirstByteMs float64 `json:"first_byte_ms,omitempty"`
	LimitMs     float64 `json:"limit_ms,omitempty"`
	DiesMs      float64 `json:"dies_ms,omitempty"` // time of WiFi's death
	Error       string  `json:"error,omitempty"`
}

// Run runs the workload once.
func (w Workload) Run(ctx context.Context, env Env) []Sample {
	switch w.Kind {
	case Sequence, Bundle:
		return []Sample{w.bundle(ctx, env)}
	case During:
		return w.during(ctx, env)
	case Dying:
		return w.dying(ctx, env)
	case Rate:
		return []Sample{w.transfer(ctx, env, LabelRate, w.Size, w.Timeout(), true)}
	default:
		sample := w.transfer(ctx, env, LabelFile, w.Size, w.Timeout(), true)
		sample.LimitMs = w.Limit()
		return []Sample{sample}
	}
}

// transfer downloads or uploads one file.
func (w Workload) transfer(ctx context.Context, env Env, label string, size int, timeout time.Duration, observe bool) Sample {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sample := Sample{Label: label, Bytes: size}
	start := time.Now()
	err := func() error {
		conn, err := env.Dial(ctx)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		if w.Up {
			err = origin.Put(conn, uint64(size), env.Seed())
		} else {
			err = origin.Get(conn, uint64(size), env.Seed(), func() { sample.FirstByteMs = since(start) })
		}
		sample.Ms = since(start)
		if err != nil {
			abort(conn)
			return err
		}
		if observe {
			env.Observe(conn)
		}
		return conn.Close()
	}()
	if err != nil {
		sample.Ms = since(start)
		sample.Error = err.Error()
	}
	return sample
}

func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		netx.Abort(tcp)
		return
	}
	_ = conn.Close()
}

// bundle transfers all files, Ways at a time.
func (w Workload) bundle(ctx context.Context, env Env) Sample {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout())
	defer cancel()
	sample := Sample{Label: LabelBundle, Bytes: w.Count * w.Size, LimitMs: w.Limit()}
	next := make(chan int)
	var wait sync.WaitGroup
	var mu sync.Mutex
	start := time.Now()
	for range w.Ways {
		wait.Go(func() {
			for i := range next {
				begun := since(start)
				one := w.transfer(ctx, env, LabelFile, w.Size, w.Timeout(), i == w.Count-1)
				mu.Lock()
				sample.Ms = max(sample.Ms, begun+one.Ms)
				if sample.Error == "" && one.Error != "" {
					sample.Error = fmt.Sprintf("file %d of %d: %s", i+1, w.Count, one.Error)
				}
				mu.Unlock()
			}
		})
	}
	for i := range w.Count {
		next <- i
	}
	close(next)
	wait.Wait()
	return sample
}

// during runs short transfers during a long one. Only those that end before the long one count.
func (w Workload) during(ctx context.Context, env Env) []Sample {
	bulk := w.background(ctx, env, LabelBulk)
	var samples []Sample
	for wait := firstShort; ; wait = shortPause {
		select {
		case whole := <-bulk:
			return append(samples, whole)
		case <-time.After(wait):
		}
		one := w.transfer(ctx, env, LabelShort, w.Short, w.Timeout(), false)
		select {
		case whole := <-bulk:
			return append(samples, whole)
		default:
			samples = append(samples, one)
		}
	}
}

// background starts the workload's file.
func (w Workload) background(ctx context.Context, env Env, label string) <-chan Sample {
	done := make(chan Sample, 1)
	go func() { done <- w.transfer(ctx, env, label, w.Size, w.Timeout(), true) }()
	return done
}

// dying kills WiFi during a file, and transfers other files while WiFi is dead and after its return.
func (w Workload) dying(ctx context.Context, env Env) []Sample {
	start := time.Now()
	running := w.background(ctx, env, LabelDies)
	time.Sleep(ms(dieAfter * w.Limit()))
	killed := env.KillWiFi()
	diesMs := since(start)
	first := <-running
	first.DiesMs, first.LimitMs = diesMs, w.fileDying(w.Size, diesMs)
	samples := []Sample{first}
	for range deadFiles {
		one := w.transfer(ctx, env, LabelDead, deadSize, deadTimeout, false)
		one.LimitMs = w.fileDying(deadSize, 0)
		samples = append(samples, one)
		if one.Error != "" {
			break // the next would take as long
		}
	}
	revived := env.ReviveWiFi()
	select {
	case <-ctx.Done():
	case <-time.After(restAfterReturn):
	}
	back := w.transfer(ctx, env, LabelBack, backSize, w.Timeout(), false)
	back.LimitMs = w.file(backSize)
	samples = append(samples, back)
	for _, err := range []error{killed, revived} {
		if err != nil { // WiFi was not in the expected state
			for i := range samples {
				samples[i].Error = err.Error()
			}
		}
	}
	return samples
}

func since(start time.Time) float64 { return float64(time.Since(start).Microseconds()) / 1000 }
