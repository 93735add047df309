package logger

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"mplab/control"
	"mplab/phonelog/internal/logger/store"
	"mplab/phonelog/internal/logger/upload"
)

// Status is the state of a logger in the answer of its control socket.
type Status struct {
	Role    string            `json:"role"` // always "logger"
	PID     int               `json:"pid"`
	Device  string            `json:"device"`
	UptimeS float64           `json:"uptime_s"`
	Run     string            `json:"run"`
	Records uint64            `json:"records"` // of this run
	Lost    uint64            `json:"lost_records"`
	Sources map[string]string `json:"sources"`
	Store   store.Status      `json:"store"`
	Upload  *upload.Status    `json:"upload,omitempty"`
	Now     map[string]any    `json:"now"` // the latest states; names are as recorded (hashed or not)
}

func (l *Logger) status() Status {
	numbered, lost := l.recorder.counts()
	s := Status{Role: "logger", PID: os.Getpid(), Device: l.config.Device, UptimeS: time.Since(l.started).Round(time.Millisecond).Seconds(), Run: l.recorder.run,
		Records: numbered, Lost: lost, Sources: l.readFrom(), Store: l.store.Status(), Now: l.recorder.all()}
	if l.uploader != nil {
		u := l.uploader.Status()
		s.Upload = &u
	}
	return s
}

// all returns copies of the latest states, by key.
func (r *recorder) all() map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	states := make(map[string]any, len(r.seen))
	for key, s := range r.seen {
		states[key] = s.Copy()
	}
	return states
}

// operations returns the operations of the control socket.
func (l *Logger) operations() control.Operations {
	return control.Operations{
		"status": func() (any, error) { return l.status(), nil },
		"upload": func() (any, error) {
			if l.uploader == nil {
				return nil, errors.New("the configuration has no upload")
			}
			if err := l.recorder.rotate(); err != nil {
				return nil, err
			}
			l.uploader.Force()
			return nil, nil
		},
	}
}

// Write writes the status as text.
func (s Status) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "logger of %s, process %d, since %s: %d records, %d lost\n", s.Device, s.PID, time.Duration(s.UptimeS*float64(time.Second)).Round(time.Second), s.Records, s.Lost)
	for _, name := range slices.Sorted(maps.Keys(s.Sources)) {
		fmt.Fprintf(&b, "  %-10s from %s\n", name, s.Sources[name])
	}
	fmt.Fprintf(&b, "files: %d bytes; %d wait, %d uploaded, %d refused; dropped without upload: %d (%d bytes)\n",
		s.Store.Bytes, s.Store.Waiting, s.Store.Sent, s.Store.Refused, s.Store.Dropped.Batches, s.Store.Dropped.Bytes)
	if u := s.Upload; u != nil {
		fmt.Fprintf(&b, "upload to %s: %s", u.URL, u.State)
		if u.Error != "" {
			fmt.Fprintf(&b, "; last error: %s", u.Error)
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
