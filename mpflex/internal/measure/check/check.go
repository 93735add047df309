package check

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/config"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/wire"
)

const (
	exchangeSize = 64 << 10
	pollInterval = 5 * time.Millisecond
)

// Options say what is to be proved.
type Options struct {
	Target       netip.AddrPort // zero: the proxy's echo service
	WaitSubflows int            // or paths of a session; 0: do not wait
	Timeout      time.Duration
}

// Result is what was found.
type Result struct {
	OK                bool         `json:"ok"`
	Error             string       `json:"error,omitempty"`
	Transport         string       `json:"transport"`
	Multipath         bool         `json:"mptcp"`
	Subflows          int          `json:"subflows"`        // of a session: its paths
	Local             []netip.Addr `json:"local"`           // local address of each subflow, or of a connection over each of devices, each once
	Paths             []string     `json:"paths,omitempty"` // the interfaces of a session
	Plain             bool         `json:"plain,omitempty"` // the paths of the session are not private
	CongestionControl string       `json:"congestion_control"`
	RTTms             float64      `json:"rtt_ms"` // from the hello to the proxy's answer
}

// Run opens one connection and examines it.
func Run(ctx context.Context, c config.Agent, dialer *carrier.Dialer, o Options) Result {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	result := Result{Transport: c.Transport, Local: []netip.Addr{}}
	if err := run(ctx, dialer, o, &result); err != nil {
		result.Error = err.Error()
		return result
	}
	result.OK = true
	return result
}

// run examines one connection, or one over each device of the dialer.
func run(ctx context.Context, dialer *carrier.Dialer, o Options, result *Result) error {
	var local []netip.Addr
	for range max(1, len(dialer.Devices)) {
		if err := runOne(ctx, dialer, o, result); err != nil {
			return err
		}
		for _, address := range result.Local {
			if !slices.Contains(local, address) {
				local = append(local, address)
			}
		}
	}
	if len(dialer.Devices) > 0 {
		result.Local = local
	}
	return nil
}

func runOne(ctx context.Context, dialer *carrier.Dialer, o Options, result *Result) error {
	conn, err := open(ctx, dialer, o, result)
	if errors.As(err, new(*wire.SkewError)) {
		conn, err = open(ctx, dialer, o, result) // by the proxy's clock
	}
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is left to lose
	result.CongestionControl = netx.Congestion(conn.TCP)
	return waitSubflows(ctx, conn, o, result)
}

// open opens a carrying connection, hears the answer, and exchanges bytes with
// the echo service. The end of ctx ends it.
func open(ctx context.Context, dialer *carrier.Dialer, o Options, result *Result) (*carrier.Conn, error) {
	request := carrier.Request{Command: wire.Echo}
	if o.Target.IsValid() {
		request.Command, request.Destination = wire.Connect, o.Target
	}
	conn, err := dialer.Open(ctx, request)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { netx.Abort(conn) })
	defer stop()
	err = conn.Answer()
	result.RTTms = float64(time.Since(conn.Sent).Microseconds()) / 1e3
	if err == nil && request.Command == wire.Echo {
		err = exchange(conn)
	}
	if err != nil {
		netx.Abort(conn)
		return nil, timely(ctx, o, err)
	}
	return conn, nil
}

// exchange sends random bytes and compares what comes back.
func exchange(conn relay.Stream) error {
	sent := make([]byte, exchangeSize)
	_, _ = rand.Read(sent) // never fails
	writing := make(chan error, 1)
	go func() {
		_, err := conn.Write(sent)
		writing <- err
	}()
	received := make([]byte, exchangeSize)
	if _, err := io.ReadFull(conn, received); err != nil {
		return fmt.Errorf("the exchange broke off: %w", err)
	}
	if err := <-writing; err != nil {
		return fmt.Errorf("the exchange broke off: %w", err)
	}
	if !bytes.Equal(sent, received) {
		return fmt.Errorf("the echo differs from what was sent")
	}
	return nil
}

// waitSubflows waits until the connection has as many subflows as asked for.
func waitSubflows(ctx context.Context, conn *carrier.Conn, o Options, result *Result) error {
	for {
		paths := netx.ReadPaths(conn.TCP)
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d subflows after %s", result.Subflows, o.WaitSubflows, o.Timeout)
		}
		result.Multipath, result.Subflows, result.Local = paths.Multipath, paths.Subflows, paths.Local
		if paths.Subflows >= o.WaitSubflows {
			return nil
		}
		if !paths.Multipath {
			return fmt.Errorf("%d subflows are asked for; the connection is plain TCP and has one", o.WaitSubflows)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
}

// timely says that the time was up when it was.
func timely(ctx context.Context, o Options, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("no answer within %s", o.Timeout)
	}
	return err
}
