package upload

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mplab/phonelog/internal/config"
	"mplab/phonelog/internal/logger/store"
)

const (
	// answerMost is the maximum number of bytes read of an answer.
	answerMost = 4096
	// Directories of Android's trusted certificates: of Android 14 and later,
	// and of earlier releases.
	androidAuthorities    = "/apex/com.android.conscrypt/cacerts"
	androidAuthoritiesOld = "/system/etc/security/cacerts"
)

// Conditions are the conditions that uploads depend on.
type Conditions struct {
	WiFi     string   // its interface; "": no WiFi
	Charging *bool    // nil: unknown
	Level    *float64 // battery level in percent; nil: unknown
}

// Status is the state of uploads.
type Status struct {
	URL      string  `json:"url"`
	State    string  `json:"state"` // idle, sending, or the condition it waits for
	Sent     uint64  `json:"sent"`  // batches sent since the start
	Refused  uint64  `json:"refused"`
	Failures int     `json:"failures"`          // since the last success
	RetryS   float64 `json:"retry_s,omitempty"` // until the next try
	Error    string  `json:"error,omitempty"`   // the last error
}

// Uploader sends batches. It is safe for concurrent use, but Run must be called
// only once.
type Uploader struct {
	device     string
	config     config.LoggerUpload
	store      *store.Store
	conditions func() Conditions
	roots      *x509.CertPool
	force      chan struct{}

	mu     sync.Mutex // guards the following fields
	status Status
	retry  time.Time
}

// New returns an uploader. It returns an error if the authorities file is
// invalid.
func New(device string, c config.LoggerUpload, s *store.Store, conditions func() Conditions) (*Uploader, error) {
	roots, err := authorities(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("upload.ca_file: %w", err)
	}
	return &Uploader{device: device, config: c, store: s, conditions: conditions, roots: roots, force: make(chan struct{}, 1),
		status: Status{URL: c.URL, State: "idle"}}, nil
}

// authorities returns the trusted authorities; nil means the system's. Only
// Android's own programs find Android's authorities automatically.
func authorities(file string) (*x509.CertPool, error) {
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s holds no certificate", file)
		}
		return pool, nil
	}
	for _, dir := range []string{androidAuthorities, androidAuthoritiesOld} {
		files, _ := filepath.Glob(dir + "/*")
		pool, found := x509.NewCertPool(), false
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				found = pool.AppendCertsFromPEM(data) || found
			}
		}
		if found {
			return pool, nil
		}
	}
	return nil, nil
}

// Force sends the waiting batches now, regardless of conditions and earlier
// failures.
func (u *Uploader) Force() {
	select {
	case u.force <- struct{}{}:
	default: // a request is already pending
	}
}

// Status returns the state of uploads.
func (u *Uploader) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.status
	if left := time.Until(u.retry); left > 0 {
		s.RetryS = left.Round(time.Millisecond).Seconds()
	}
	return s
}

// Run sends waiting batches whenever the conditions are met, until ctx ends.
// report receives problems.
func (u *Uploader) Run(ctx context.Context, report func(error)) {
	for {
		u.mu.Lock()
		wait := max(config.Duration(u.config.EveryS), time.Until(u.retry))
		u.mu.Unlock()
		wait = time.Duration(float64(wait) * (0.95 + 0.1*rand.Float64()))
		timer := time.NewTimer(wait)
		forced := false
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-u.force:
			timer.Stop()
			forced = true
		case <-timer.C:
		}
		if err := u.Send(ctx, forced); err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

// Send sends all waiting batches if the conditions are met. It returns the
// error that stopped it.
func (u *Uploader) Send(ctx context.Context, forced bool) error {
	batches := u.store.Waiting()
	if len(batches) == 0 {
		u.set(func(s *Status) { s.State = "idle" })
		return nil
	}
	c := u.conditions()
	if why := u.blocked(c); why != "" && !forced {
		u.set(func(s *Status) { s.State = "waits: " + why })
		return nil
	}
	u.set(func(s *Status) { s.State = "sending" })
	device := ""
	if u.config.Needs(config.WhenWiFi) && !forced {
		device = c.WiFi // not over another interface that the routes prefer
	}
	client := u.client(device)
	defer client.CloseIdleConnections()
	for _, b := range batches {
		if err := u.send(ctx, client, b); err != nil {
			if ctx.Err() != nil {
				u.set(func(s *Status) { s.State = "idle" })
				return ctx.Err()
			}
			u.fail(err)
			return err
		}
		if why := u.blocked(u.conditions()); why != "" && !forced {
			u.set(func(s *Status) { s.State = "waits: " + why })
			return nil
		}
	}
	u.set(func(s *Status) { s.State = "idle" })
	return nil
}

// blocked returns the reason why uploads must wait, or "". A condition whose
// state is unknown is not met.
func (u *Uploader) blocked(c Conditions) string {
	switch {
	case u.config.Needs(config.WhenWiFi) && c.WiFi == "":
		return "there is no WiFi"
	case u.config.Needs(config.WhenCharging) && c.Charging == nil:
		return "it is not known whether the phone is charged"
	case u.config.Needs(config.WhenCharging) && !*c.Charging:
		return "the phone is not charged"
	case u.config.BatteryPercent > 0 && c.Level == nil:
		return "the level of the battery is not known"
	case u.config.BatteryPercent > 0 && *c.Level < u.config.BatteryPercent:
		return fmt.Sprintf("the battery has %.0f %%, less than %.0f %%", *c.Level, u.config.BatteryPercent)
	}
	return ""
}

// laterError is an answer that asks to retry, after a time if it is not 0.
type laterError struct {
	status string
	after  time.Duration
}

func (e *laterError) Error() string { return "the collector says " + e.status }

// fail records a failure and sets the time of the next attempt: the pauses
// double, and are shortened by a random part of up to one half, so that phones
// do not retry simultaneously.
func (u *Uploader) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	most := config.Duration(u.config.BackoffMostS)
	pause := config.Duration(u.config.BackoffS) << min(u.status.Failures, 24)
	if pause > most || pause <= 0 {
		pause = most
	}
	pause = time.Duration(float64(pause) * (0.5 + 0.5*rand.Float64()))
	var later *laterError
	if errors.As(err, &later) {
		pause = max(pause, min(later.after, most))
	}
	u.status.Failures++
	u.status.State, u.status.Error = "waits after a failure", err.Error()
	u.retry = time.Now().Add(pause)
}

func (u *Uploader) set(change func(*Status)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(&u.status)
}

// send sends one batch and records the result.
func (u *Uploader) send(ctx context.Context, client *http.Client, b store.Batch) error {
	id, data, err := u.store.Load(b, u.device)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // dropped since
	case err != nil:
		return errors.Join(err, u.store.Refused(b)) // an unreadable file must not block the others
	}
	ctx, cancel := context.WithTimeout(ctx, config.Duration(u.config.TimeoutS))
	defer cancel()
	at := u.config.URL + "/v1/batches/" + url.PathEscape(u.device) + "/" + url.PathEscape(id)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	request.Header.Set("Content-Encoding", "gzip")
	u.authorize(request)
	response, err := client.Do(request)
	var bare *url.Error
	if errors.As(err, &bare) {
		return bare.Err // without the address: it contains the batch ID, so each would be a new problem
	}
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // read as far as wanted
	text, _ := io.ReadAll(io.LimitReader(response.Body, answerMost))
	switch response.StatusCode {
	case http.StatusOK, http.StatusCreated:
		u.set(func(s *Status) { s.Sent++; s.Failures = 0; s.Error = "" })
		return u.store.Sent(b)
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		// A retry would fail again: do not block the other batches.
		u.set(func(s *Status) { s.Refused++; s.Error = saying(response.Status, text) })
		return u.store.Refused(b)
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return &laterError{saying(response.Status, text), time.Duration(max(0, min(seconds, 86400))) * time.Second}
}

// saying returns a status with the text of the answer.
func saying(status string, text []byte) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "�")), " ")
	return strings.TrimSuffix(fmt.Sprintf("%s: %.200s", status, line), ": ")
}

func (u *Uploader) authorize(r *http.Request) {
	r.Header.Set("Authorization", "Bearer "+u.config.Token)
}

// client returns a client that connects over an interface; "": by routing.
func (u *Uploader) client(device string) *http.Client {
	dialer := &net.Dialer{Timeout: config.Duration(u.config.TimeoutS)}
	if device != "" {
		dialer.Control = func(_, _ string, raw syscall.RawConn) error {
			var failure error
			err := raw.Control(func(fd uintptr) { failure = unix.BindToDevice(int(fd), device) })
			return cmp.Or(err, failure)
		}
	}
	return &http.Client{
		// A redirect would send the token to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: u.roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: config.Duration(u.config.TimeoutS),
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if u.config.Connect.IsValid() {
					address = u.config.Connect.String()
				}
				return dialer.DialContext(ctx, network, address)
			},
		},
	}
}

// Address is the phone's address that the collector saw on one interface.
type Address struct {
	Address netip.Addr
	Connect time.Duration // duration of the TCP handshake
	RTT     time.Duration // of a request on an open connection
}
