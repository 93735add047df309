package collector

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"mime"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"mplab/phonelog/internal/collector/store"
)

// busyRetry is the Retry-After time of a collector that is busy or shutting down.
const busyRetry = 5 * time.Second

// quiet returns a logger that discards the messages of package http: TLS errors
// of strangers are irrelevant.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// routes returns the handlers by pattern, as documented in docs/collector.yaml.
func (k *Collector) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /health":                       k.health,
		"GET /myip":                         k.myIP,
		"POST /v1/batches/{device}/{batch}": k.batch,
	}
}

// Handler answers requests.
func (k *Collector) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range k.routes() {
		mux.HandleFunc(pattern, handle)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	})
}

// problem is the answer to a request that failed.
type problem struct {
	Error string `json:"error"`
	Line  int    `json:"line,omitempty"` // in the batch, starts at 1

	status int
	retry  time.Duration
}

func refuse(status int, format string, args ...any) *problem {
	return &problem{Error: fmt.Sprintf(format, args...), status: status}
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client is gone
}

func (k *Collector) fail(w http.ResponseWriter, p *problem) {
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retry.Seconds()))))
	}
	if p.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="collector"`)
	}
	answer(w, p.status, p)
}

// Health is the answer of GET /health.
type Health struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

func (k *Collector) health(w http.ResponseWriter, _ *http.Request) {
	if err := k.store.Healthy(); err != nil {
		text := "the disk cannot be used"
		if errors.Is(err, store.ErrFull) {
			text = store.ErrFull.Error()
		}
		answer(w, http.StatusServiceUnavailable, Health{Error: text})
		return
	}
	answer(w, http.StatusOK, Health{OK: true})
}

func (k *Collector) myIP(w http.ResponseWriter, r *http.Request) {
	device, p := k.authorize(r)
	if p == nil {
		p = k.limit(device)
	}
	if p != nil {
		k.note(r, device, "", p)
		k.fail(w, p)
		return
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		k.fail(w, refuse(http.StatusInternalServerError, "the address is not known"))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, remote.Addr().Unmap().WithZone(""))
}

// authorize returns the device of a token. It compares all tokens, each in
// constant time.
func (k *Collector) authorize(r *http.Request) (device string, p *problem) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		k.counts.unauthorized.Add(1)
		return "", refuse(http.StatusUnauthorized, "a bearer token is needed")
	}
	given := sha256.Sum256([]byte(token))
	for hash, name := range *k.tokens.Load() {
		if subtle.ConstantTimeCompare(hash[:], given[:]) == 1 {
			device = name
		}
	}
	if device == "" {
		k.counts.unauthorized.Add(1)
		return "", refuse(http.StatusUnauthorized, "the token is not known")
	}
	return device, nil
}

// limit refuses a device that exceeds its rate limit.
func (k *Collector) limit(device string) *problem {
	reservation := k.limiter(device).Reserve()
	delay := reservation.Delay()
	if delay <= 0 {
		return nil
	}
	reservation.Cancel()
	p := refuse(http.StatusTooManyRequests, "%s sends too many; %g a minute are allowed", device, k.config.Limits.BatchesPerMinute)
	p.retry = delay
	return p
}

// Stored is the answer to a batch.
type Stored struct {
	OK     bool `json:"ok"`
	Stored bool `json:"stored"` // false: it was already stored
	Lines  int  `json:"lines"`
}

func (k *Collector) batch(w http.ResponseWriter, r *http.Request) {
	device, id := r.PathValue("device"), r.PathValue("batch")
	created, content, p := k.take(w, r, device, id)
	if p != nil {
		k.note(r, device, id, p)
		k.fail(w, p)
		return
	}
	status, count := http.StatusOK, bytes.Count(content, []byte("\n"))
	if created {
		status = http.StatusCreated
		k.counts.stored.Add(1)
		k.counts.lines.Add(uint64(count))
		k.counts.bytes.Add(uint64(len(content)))
	} else {
		k.counts.repeated.Add(1)
	}
	k.log.Write(event{Event: "batch", T: now(), Device: device, Batch: id, Status: status, Lines: count, Bytes: len(content), Remote: r.RemoteAddr})
	answer(w, status, Stored{OK: true, Stored: created, Lines: count})
}

// take reads, checks and stores a batch.
func (k *Collector) take(w http.ResponseWriter, r *http.Request, device, id string) (created bool, content []byte, p *problem) {
	owner, p := k.authorize(r)
	switch {
	case p != nil:
		return false, nil, p
	case owner != device:
		return false, nil, refuse(http.StatusForbidden, "the token is that of another device")
	}
	if p := k.limit(device); p != nil {
		return false, nil, p
	}
	if err := store.CheckID(id); err != nil {
		return false, nil, refuse(http.StatusBadRequest, "%s", err)
	}
	select {
	case k.busy <- struct{}{}:
		defer func() { <-k.busy }()
	default:
		p := refuse(http.StatusServiceUnavailable, "too many batches are being taken")
		p.retry = busyRetry
		return false, nil, p
	}
	if content, p = k.read(w, r); p != nil {
		return false, nil, p
	}
	if bad := k.checker.Check(content); bad != nil {
		p := refuse(http.StatusUnprocessableEntity, "%s", bad.Problem)
		p.Line = bad.Line
		return false, nil, p
	}
	created, err := k.store.Put(device, id, content)
	switch {
	case errors.Is(err, store.ErrConflict):
		return false, nil, refuse(http.StatusConflict, "%s", store.ErrConflict)
	case errors.Is(err, store.ErrFull):
		return false, nil, refuse(http.StatusInsufficientStorage, "%s", store.ErrFull)
	case errors.Is(err, store.ErrClosed):
		p := refuse(http.StatusServiceUnavailable, "%s", err)
		p.retry = busyRetry
		return false, nil, p
	case err != nil:
		k.log.Write(event{Event: "disk", T: now(), Device: device, Batch: id, Text: err.Error()})
		return false, nil, refuse(http.StatusInternalServerError, "the batch could not be stored")
	}
	return created, content, nil
}

// read reads the body of a batch.
func (k *Collector) read(w http.ResponseWriter, r *http.Request) ([]byte, *problem) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-ndjson" {
		return nil, refuse(http.StatusUnsupportedMediaType, "the content type is application/x-ndjson")
	}
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	if encoding != "" && encoding != "identity" && encoding != "gzip" {
		return nil, refuse(http.StatusUnsupportedMediaType, "the content encoding %.20q is not known; known are gzip and identity", encoding)
	}
	most := k.config.Limits.BatchBytes
	large := refuse(http.StatusRequestEntityTooLarge, "a batch has at most %d bytes as sent, %d as lines", most, k.config.Limits.ContentBytes)
	if r.ContentLength > most {
		return nil, large
	}
	var body io.Reader = http.MaxBytesReader(w, r.Body, most)
	if encoding == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, bodyProblem(err, large)
		}
		body = unpacked
	}
	content, err := io.ReadAll(io.LimitReader(body, k.config.Limits.ContentBytes+1))
	switch {
	case err != nil:
		return nil, bodyProblem(err, large)
	case int64(len(content)) > k.config.Limits.ContentBytes:
		return nil, large
	}
	return content, nil
}

// bodyProblem returns the reason why a body cannot be read.
func bodyProblem(err error, large *problem) *problem {
	var limit *http.MaxBytesError
	if errors.As(err, &limit) {
		return large
	}
	return refuse(http.StatusBadRequest, "the body cannot be read: it ends too early, or is not gzip")
}

// note logs a refusal, with rate limiting.
func (k *Collector) note(r *http.Request, device, batch string, p *problem) {
	k.counts.refused.Add(1)
	if unlogged, ok := k.throttle.Take(time.Now()); ok {
		k.log.Write(event{Event: "refused", T: now(), Device: clip(device), Batch: clip(batch), Status: p.status, Remote: r.RemoteAddr, Text: p.Error, Unlogged: unlogged})
	}
}

// clip limits the text that a stranger can write into the log.
func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), 130)], "") }
