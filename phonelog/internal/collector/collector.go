package collector

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"mplab/control"
	"mplab/internal/jsonlog"
	"mplab/phonelog/internal/collector/lines"
	"mplab/phonelog/internal/collector/store"
	"mplab/phonelog/internal/config"
)

const (
	// A phone on a bad network is slow to send a body, but not a header.
	headerTimeout = 10 * time.Second
	readTimeout   = 2 * time.Minute
	writeTimeout  = 3 * time.Minute
	idleTimeout   = time.Minute
	// graceTime is the maximum duration of open requests at shutdown.
	graceTime = 10 * time.Second
)

// Collector is a collector with an open listener.
type Collector struct {
	config   config.Collector
	store    *store.Store
	checker  *lines.Checker
	log      *jsonlog.Log
	throttle jsonlog.Throttle
	listener net.Listener
	server   *http.Server
	control  *control.Server // nil: none
	busy     chan struct{}   // one element per batch in progress
	hangup   chan os.Signal
	started  time.Time

	tokens      atomic.Pointer[config.Tokens]
	certificate atomic.Pointer[tls.Certificate]
	counts      counts

	mu       sync.Mutex // guards the following fields
	limiters map[string]*rate.Limiter
}

// counts are totals since the start.
type counts struct {
	stored, repeated, refused, unauthorized, lines, bytes atomic.Uint64
}

// New opens the store and the listener.
func New(c config.Collector, log *jsonlog.Log) (*Collector, error) {
	s, report, err := store.Open(c.Store, c.MinFreeBytes)
	if err != nil {
		return nil, err
	}
	for _, path := range report.Torn {
		log.Write(event{Event: "torn", T: now(), Text: path + " ended in a batch that was not acknowledged; it was moved aside"})
	}
	for _, place := range report.Damaged {
		log.Write(event{Event: "damaged", T: now(), Text: place + ": an unreadable part was skipped"})
		fmt.Fprintf(os.Stderr, "phonelog collector: %s: an unreadable part was skipped\n", place)
	}
	k := &Collector{config: c, store: s, checker: lines.New(c.Limits.LineBytes), log: log, busy: make(chan struct{}, c.Limits.Concurrent),
		hangup: make(chan os.Signal, 1), started: time.Now(), limiters: make(map[string]*rate.Limiter)}
	k.tokens.Store(&c.Tokens)
	if err := k.listen(); err != nil {
		_ = s.Close()
		return nil, err
	}
	if c.Control != "" {
		if k.control, err = control.Listen(c.Control, "collector"); err != nil {
			_ = k.listener.Close()
			_ = s.Close()
			return nil, err
		}
		k.control.Start(control.Operations{"status": func() (any, error) { return k.status(), nil }}.Answer)
	}
	signal.Notify(k.hangup, syscall.SIGHUP)
	return k, nil
}

func (k *Collector) listen() (err error) {
	if k.config.TLS != nil {
		certificate, err := k.config.TLS.Read()
		if err != nil {
			return err
		}
		k.certificate.Store(&certificate)
	}
	if k.listener, err = net.Listen("tcp", k.config.Listen.String()); err != nil {
		return err
	}
	k.server = &http.Server{Handler: k.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 16 << 10, ErrorLog: quiet()}
	if k.config.TLS != nil {
		k.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return k.certificate.Load(), nil
		}}
	}
	return nil
}

// Listening returns the address of the listener.
func (k *Collector) Listening() netip.AddrPort {
	return k.listener.Addr().(*net.TCPAddr).AddrPort()
}

// Run serves until ctx ends, and then waits up to graceTime for open requests.
// SIGHUP reloads tokens and certificate.
func (k *Collector) Run(ctx context.Context) error {
	defer signal.Stop(k.hangup)
	ended := make(chan error, 1)
	go func() {
		if k.config.TLS != nil {
			ended <- k.server.ServeTLS(k.listener, "", "")
		} else {
			ended <- k.server.Serve(k.listener)
		}
	}()
	var failure error
	for running := true; running; {
		select {
		case <-k.hangup:
			k.Reload()
		case failure = <-ended:
			running = false
		case <-ctx.Done():
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
			if k.server.Shutdown(grace) != nil {
				_ = k.server.Close()
			}
			cancel()
			failure = <-ended
			running = false
		}
	}
	if k.control != nil {
		k.control.Close()
	}
	if errors.Is(failure, http.ErrServerClosed) {
		failure = nil
	}
	return errors.Join(failure, k.store.Close())
}

// Reload reads tokens and certificate again. If one cannot be read, the old one
// stays in use.
func (k *Collector) Reload() {
	tokens, err := k.config.ReadTokens()
	if err == nil {
		k.tokens.Store(&tokens)
	}
	if k.config.TLS != nil {
		certificate, failed := k.config.TLS.Read()
		if failed == nil {
			k.certificate.Store(&certificate)
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		k.log.Write(event{Event: "reload", T: now(), Text: err.Error()})
		fmt.Fprintln(os.Stderr, "phonelog collector: reading again:", err)
		return
	}
	k.log.Write(event{Event: "reload", T: now(), Text: fmt.Sprintf("%d devices", len(tokens))})
}

// limiter returns the rate limiter of a device.
func (k *Collector) limiter(device string) *rate.Limiter {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.limiters[device]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(k.config.Limits.BatchesPerMinute/60), k.config.Limits.Burst)
		k.limiters[device] = l
	}
	return l
}

// Status is the state of a collector in the answer of its control socket.
type Status struct {
	Role         string  `json:"role"` // always "collector"
	PID          int     `json:"pid"`
	UptimeS      float64 `json:"uptime_s"`
	Devices      int     `json:"devices"` // devices that have ever uploaded
	Batches      int     `json:"batches"` // stored batches
	Stored       uint64  `json:"stored"`  // since the start, as are all following counters
	Repeated     uint64  `json:"repeated"`
	Refused      uint64  `json:"refused"`
	Unauthorized uint64  `json:"unauthorized"`
	Lines        uint64  `json:"lines"`
	Bytes        uint64  `json:"bytes"`
	Healthy      bool    `json:"healthy"`
}

func (k *Collector) status() Status {
	devices, batches := k.store.Counts()
	return Status{Role: "collector", PID: os.Getpid(), UptimeS: time.Since(k.started).Round(time.Millisecond).Seconds(), Devices: devices, Batches: batches,
		Stored: k.counts.stored.Load(), Repeated: k.counts.repeated.Load(), Refused: k.counts.refused.Load(), Unauthorized: k.counts.unauthorized.Load(),
		Lines: k.counts.lines.Load(), Bytes: k.counts.bytes.Load(), Healthy: k.store.Healthy() == nil}
}

// event is a record of the collector's log.
type event struct {
	Event    string  `json:"event"` // batch, refused, torn, damaged, reload
	T        float64 `json:"t"`
	Device   string  `json:"device,omitempty"`
	Batch    string  `json:"batch,omitempty"`
	Status   int     `json:"status,omitempty"`
	Lines    int     `json:"lines,omitempty"`
	Bytes    int     `json:"bytes,omitempty"`
	Remote   string  `json:"remote,omitempty"`
	Text     string  `json:"text,omitempty"`
	Unlogged uint64  `json:"unlogged,omitempty"` // refusals omitted from the log by rate limiting
}

func now() float64 { return jsonlog.Unix(time.Now()) }
