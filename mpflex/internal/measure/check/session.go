package check

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"mplab/mpflex/config"
	"mplab/mpflex/internal/agent"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/internal/transport/uplink"
)

// RunSession makes a separate session as the agent would, and examines it.
// Options.WaitSubflows counts its paths.
func RunSession(ctx context.Context, c config.Agent, o Options) Result {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	result := Result{Transport: c.Transport, Local: []netip.Addr{}, Plain: c.Plain}
	failures := failures{last: map[string]error{}}
	up, err := agent.NewUplink(c, failures.note)
	if err == nil {
		var running sync.WaitGroup
		running.Go(func() { up.Run(ctx) })
		err = runSession(ctx, c, up, o, &failures, &result)
		cancel()
		running.Wait()
	}
	if err != nil {
		result.Error = err.Error()
	}
	result.OK = err == nil
	return result
}

func runSession(ctx context.Context, c config.Agent, up *uplink.Uplink, o Options, failures *failures, result *Result) error {
	if o.WaitSubflows > len(c.Paths) {
		return fmt.Errorf("%d paths are requested; the configuration has %d", o.WaitSubflows, len(c.Paths))
	}
	for result.Subflows < o.WaitSubflows {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d paths after %s%s", result.Subflows, o.WaitSubflows, o.Timeout, failures.of(c, result.Paths))
		case <-time.After(pollInterval):
		}
		result.describe(up.Session().Status().Paths)
	}
	dialer := agent.NewDialer(c)
	dialer.Streams = up
	conn, err := open(ctx, dialer, o, result)
	result.describe(up.Session().Status().Paths)
	if err != nil {
		if len(result.Paths) == 0 {
			err = fmt.Errorf("%w%s", err, failures.of(c, nil))
		}
		return err
	}
	return conn.Close()
}

// describe fills in the properties of the paths.
func (r *Result) describe(paths []session.PathStatus) {
	r.Subflows, r.Local, r.Paths = len(paths), []netip.Addr{}, nil
	var controls []string
	for _, p := range paths {
		r.Paths = append(r.Paths, p.Name)
		if local, err := netip.ParseAddrPort(p.Local); err == nil && !slices.Contains(r.Local, local.Addr()) {
			r.Local = append(r.Local, local.Addr())
		}
		if !slices.Contains(controls, p.CongestionControl) {
			controls = append(controls, p.CongestionControl)
		}
	}
	r.CongestionControl = strings.Join(controls, ", ")
	for _, p := range paths {
		r.ReceiveBuffer = max(r.ReceiveBuffer, p.ReceiveBuffer)
	}
}

// failures holds the reasons why paths could not be set up.
type failures struct {
	mu   sync.Mutex
	last map[string]error // by interface
}

func (f *failures) note(e uplink.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e.What {
	case "attached":
		delete(f.last, e.Name)
	case "failed", "ended":
		// The attempt that the end of the check aborts says less than the one before.
		late := errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, os.ErrDeadlineExceeded)
		if e.Err != nil && (f.last[e.Name] == nil || !late) {
			f.last[e.Name] = e.Err
		}
	}
}

// of returns the reasons why paths of the configuration are not attached.
func (f *failures) of(c config.Agent, attached []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, p := range c.Paths {
		if slices.Contains(attached, p.Device) {
			continue
		}
		name, why := p.Device, "no answer"
		if name == "" {
			name = "by the routes"
		}
		if err := f.last[p.Device]; err != nil {
			why = err.Error()
		}
		all = append(all, name+": "+why)
	}
	return " (" + strings.Join(all, "; ") + ")"
}
