package logger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"mplab/control"
	"mplab/internal/ifaces"
	"mplab/phonelog/internal/config"
	"mplab/phonelog/internal/logger/record"
	"mplab/phonelog/internal/logger/source"
	"mplab/phonelog/internal/logger/store"
	"mplab/phonelog/internal/logger/upload"
)

const (
	// jitter is the relative random variation of a period, so that the logger
	// is not synchronised with other periodic work.
	jitter = 0.05
	// failedMost is the maximum period of a failing source. Each failure
	// doubles its period up to this limit.
	failedMost = 10 * time.Minute
	// tickPeriod is the period of checking the age of the file and the wall
	// clock.
	tickPeriod = time.Second
)

// Logger is a logger that is ready to run.
type Logger struct {
	config   config.Logger
	store    *store.Store
	recorder *recorder
	set      *ifaces.Set
	stopSet  context.CancelFunc
	uploader *upload.Uploader // nil: none
	control  *control.Server  // nil: none
	sources  []reading
	started  time.Time

	mu    sync.Mutex // guards the following field
	froms map[string]string
}

// reading is a source with its period.
type reading struct {
	name   string
	source source.Source
	period time.Duration
	notice <-chan struct{} // nil: none
}

// New opens the store and starts to watch the interfaces. version is the
// version of the program.
func New(ctx context.Context, c config.Logger, version string) (*Logger, error) {
	s, err := OpenStore(c)
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	set, err := ifaces.Watch(watching, c.Interfaces)
	if err != nil {
		stop()
		_ = s.Close()
		return nil, err
	}
	l := &Logger{config: c, store: s, set: set, stopSet: stop, started: time.Now(), froms: make(map[string]string),
		recorder: newRecorder(s, record.Steps(c.Steps), c.HashKey, c.Records(config.RecordCellID))}
	if c.Upload != nil {
		if l.uploader, err = upload.New(c.Device, *c.Upload, s, l.conditions); err != nil {
			l.close()
			return nil, err
		}
	}
	start := l.describe(ctx, version)
	l.sources = l.choose(start.SDK)
	if c.Control != "" {
		if l.control, err = control.Listen(c.Control, "logger"); err != nil {
			l.close()
			return nil, err
		}
		l.control.Start(l.operations().Answer)
	}
	l.recorder.event(start)
	return l, nil
}

// OpenStore opens the store of a configuration.
func OpenStore(c config.Logger) (*store.Store, error) {
	return store.Open(c.Store, store.Limits{Bytes: c.Files.Bytes, Age: config.Duration(c.Files.AgeS), Total: c.Files.TotalBytes})
}

func (l *Logger) close() {
	l.stopSet()
	<-l.set.Done()
	if l.control != nil {
		l.control.Close()
	}
	_ = l.store.Close()
}

// describe returns the first record, which describes the phone.
func (l *Logger) describe(ctx context.Context, version string) *record.Start {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	facts := source.Properties(ctx, "ro.build.version.release", "ro.build.version.sdk", "ro.product.model", "ro.build.id")
	sdk, _ := strconv.Atoi(facts[1])
	return &record.Start{Device: l.config.Device, Version: version, Boot: strings.TrimSpace(string(boot)), Recorded: l.config.Record,
		Hashed: l.config.HashKey != nil, Android: facts[0], SDK: max(sdk, 0), Model: facts[2], Build: facts[3]}
}

// choose returns the sources that the configuration selects.
func (l *Logger) choose(sdk int) (all []reading) {
	p := l.config.Periods
	add := func(what string, s source.Source, seconds float64, notice <-chan struct{}) {
		if l.config.Records(what) {
			all = append(all, reading{what, s, config.Duration(seconds), notice})
		}
	}
	add(config.RecordNetwork, source.NewNetwork(l.set, l.config.Interfaces), p.NetworkS, l.set.Noticed())
	add(config.RecordWiFi, source.NewWiFi(), p.WiFiS, nil)
	add(config.RecordCell, source.NewCell(sdk), p.CellS, nil)
	add(config.RecordBattery, source.NewBattery(""), p.BatteryS, nil)
	add(config.RecordLocation, source.NewLocation(), p.LocationS, nil)
	return all
}

// Run records until ctx ends. The cause of ctx is recorded as the reason.
func (l *Logger) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, r := range l.sources {
		running.Go(func() { l.follow(ctx, r) })
	}
	running.Go(func() { every(ctx, tickPeriod, l.recorder.tick) })
	running.Go(func() { every(ctx, config.Duration(l.config.HeartbeatS), l.beat) })
	running.Go(func() {
		every(ctx, config.Duration(l.config.Files.SyncS), func() {
			if err := l.store.Sync(); err != nil {
				l.recorder.say("store", err)
			}
		})
	})
	if l.uploader != nil {
		running.Go(func() { l.uploader.Run(ctx, func(err error) { l.recorder.say("upload", err) }) })
	}
	if l.config.MyIP != nil {
		running.Go(func() { l.askMyIP(ctx) })
	}
	<-ctx.Done()
	running.Wait()
	if l.control != nil {
		l.control.Close()
	}
	l.recorder.stop(context.Cause(ctx).Error())
	l.stopSet()
	<-l.set.Done()
	return l.store.Close()
}

// follow reads a source repeatedly until ctx ends.
func (l *Logger) follow(ctx context.Context, r reading) {
	period := r.period
	for {
		if ok := l.read(ctx, r); ok {
			period = r.period
		} else {
			period = max(min(2*period, failedMost), r.period)
		}
		timer := time.NewTimer(vary(period))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.notice:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// read reads a source once. It recovers from panics, so that no text can end
// the logger.
func (l *Logger) read(ctx context.Context, r reading) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			l.recorder.say(r.name, fmt.Errorf("bug in the logger: %v: %s", p, debug.Stack()))
		}
	}()
	states, from, err := r.source.Read(ctx)
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		l.recorder.say(r.name, err)
	}
	if len(states) > 0 || err == nil {
		l.mu.Lock()
		l.froms[r.name] = from
		l.mu.Unlock()
	}
	l.recorder.see(states...)
	return err == nil || len(states) > 0
}

// beat writes a heartbeat.
func (l *Logger) beat() {
	status := l.store.Status()
	_, lost := l.recorder.counts()
	l.recorder.event(&record.Heartbeat{Stored: status.Bytes, Unsent: status.Waiting, Refused: status.Refused, Dropped: status.Dropped, Lost: lost, Sources: l.readFrom()})
}

// readFrom returns the origin of each kind of state.
func (l *Logger) readFrom() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	froms := make(map[string]string, len(l.froms))
	for name, from := range l.froms {
		froms[name] = from
	}
	return froms
}

// every calls f periodically until ctx ends.
func every(ctx context.Context, period time.Duration, f func()) {
	timer := time.NewTimer(vary(period))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			f()
			timer.Reset(vary(period))
		}
	}
}

func vary(period time.Duration) time.Duration {
	return time.Duration(float64(period) * (1 + jitter*(2*rand.Float64()-1)))
}
