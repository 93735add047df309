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
	exchangeSize = 16 << 10 // bytes: more than an initial window, so that acknowledgements must come back
	pollInterval = 5 * time.Millisecond
)

// Options selects the checks.
type Options struct {
	Target       netip.AddrPort // zero: the proxy's echo service
	WaitSubflows int            // minimum number of subflows, or of a session's paths; 0: do not wait
	Timeout      time.Duration
}

// Result is the result of a check.
type Result struct {
	OK                bool         `json:"ok"`
	Error             string       `json:"error,omitempty"`
	Transport         string       `json:"transport"`
	Multipath         bool         `json:"mptcp"`
	Subflows          int          `json:"subflows"`        // of a session: its paths
	Local             []netip.Addr `json:"local"`           // local address of each subflow, or of a connection over each device, without duplicates
	Paths             []string     `json:"paths,omitempty"` // interfaces of the session
	Plain             bool         `json:"plain,omitempty"` // the paths of the session are not encrypted
	CongestionControl string       `json:"congestion_control"`
	ReceiveBuffer     int          `json:"receive_buffer_bytes"` // largest of a socket, after the exchange
	RTTms             float64      `json:"rtt_ms"`               // from the hello to the proxy's answer
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
		conn, err = open(ctx, dialer, o, result) // with the proxy's time
	}
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is left to lose
	result.CongestionControl = netx.Congestion(conn.TCP)
	result.ReceiveBuffer = max(result.ReceiveBuffer, netx.ReceiveBuffer(conn.TCP))
	return waitSubflows(ctx, conn, o, result)
}

// open opens a carrying connection, reads the answer, and exchanges bytes with the echo
// service. The end of ctx aborts it.
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

// exchange sends random bytes and compares them with the echo.
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
		return fmt.Errorf("the exchange was interrupted: %w", err)
	}
	if err := <-writing; err != nil {
		return fmt.Errorf("the exchange was interrupted: %w", err)
	}
	if !bytes.Equal(sent, received) {
		return fmt.Errorf("the echo differs from what was sent")
	}
	return nil
}

// waitSubflows waits until the connection has at least WaitSubflows subflows.
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
			return fmt.Errorf("%d subflows are requested; the connection is plain TCP and has one", o.WaitSubflows)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
}

// timely returns a timeout error if ctx has ended, otherwise err.
func timely(ctx context.Context, o Options, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("no answer within %s", o.Timeout)
	}
	return err
}
