package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mplab/internal/cmdline"
	"mplab/internal/jsonlog"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/agent"
	"mplab/mpflex/internal/measure/check"
	"mplab/mpflex/internal/proxy"
	"mplab/mpflex/policy"
	"mplab/mpflex/status"
)

// readyLine is the line that agent and proxy print when they serve.
type readyLine struct {
	Event     string                      `json:"event"` // "ready"
	Role      string                      `json:"role"`
	PID       int                         `json:"pid"`
	Listen    map[string]connlog.Endpoint `json:"listen"`
	Transport string                      `json:"transport,omitempty"`
	Plain     bool                        `json:"plain,omitempty"` // the session is not encrypted
	Proxy     *connlog.Endpoint           `json:"proxy,omitempty"`
}

// server is an agent or a proxy with open listeners.
type server interface {
	Status() *status.Source
	Run(context.Context)
}

// role holds the parts of the agent and proxy commands that differ.
type role[C any] struct {
	name, short string
	load        func(file string) (C, error)
	paths       func(C) (log, control string)
	open        func(context.Context, C, *jsonlog.Log) (server, readyLine, error)
}

// command returns the command that serves until ctx ends.
func (r role[C]) command() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   r.name + " --config FILE",
		Short: r.short,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return r.serve(cmd, file) },
	}
	cmdline.ConfigFlag(cmd, &file)
	return cmd
}

func (r role[C]) serve(cmd *cobra.Command, file string) error {
	c, err := r.load(file)
	if err != nil {
		return cmdline.Exit(cmdline.BadInput, err)
	}
	logPath, controlPath := r.paths(c)
	log, err := jsonlog.Open(logPath)
	if err != nil {
		return cmdline.Exit(cmdline.NotReady, err)
	}
	defer log.Close() //nolint:errcheck // every record is written already
	s, line, err := r.open(cmd.Context(), c, log)
	var bad *policy.FileError
	switch {
	case errors.As(err, &bad):
		return cmdline.Exit(cmdline.BadInput, err)
	case err != nil:
		return cmdline.Exit(cmdline.NotReady, err)
	}
	stop, err := s.Status().Serve(controlPath)
	if err != nil {
		return cmdline.Exit(cmdline.NotReady, err)
	}
	defer stop()
	line.Role = r.name
	announce(cmd.OutOrStdout(), line)
	s.Run(cmd.Context())
	return nil
}

func agentCommand() *cobra.Command {
	return role[config.Agent]{
		name: "agent", short: "Take redirected connections and DNS queries, and carry them to the proxy",
		load:  config.LoadAgent,
		paths: func(c config.Agent) (log, control string) { return c.Log, c.Control },
		open: func(ctx context.Context, c config.Agent, log *jsonlog.Log) (server, readyLine, error) {
			a, err := agent.New(ctx, c, log)
			if err != nil {
				return nil, readyLine{}, err
			}
			redirect, dns := a.Listening()
			return a, readyLine{
				Transport: c.Transport, Plain: c.Plain, Proxy: &connlog.Endpoint{AddrPort: c.Proxy.AddrPort},
				Listen: listening(map[string]netip.AddrPort{
					"redirect": redirect, "dns": dns, "socks": a.ListeningSocks(), "http": a.ListeningHTTP(),
				}),
			}, nil
		},
	}.command()
}

func proxyCommand() *cobra.Command {
	return role[config.Proxy]{
		name: "proxy", short: "Accept the connections of agents and connect them to their destinations",
		load:  config.LoadProxy,
		paths: func(c config.Proxy) (log, control string) { return c.Log, c.Control },
		open: func(_ context.Context, c config.Proxy, log *jsonlog.Log) (server, readyLine, error) {
			p, err := proxy.New(c, log)
			if err != nil {
				return nil, readyLine{}, err
			}
			addresses := map[string]netip.AddrPort{}
			for transport := range c.Listen.All() {
				addresses[transport] = p.Listening(transport)
			}
			return p, readyLine{Listen: listening(addresses)}, nil
		},
	}.command()
}

// listening returns the open listeners.
func listening(addresses map[string]netip.AddrPort) map[string]connlog.Endpoint {
	listen := map[string]connlog.Endpoint{}
	for name, address := range addresses {
		if address.IsValid() {
			listen[name] = connlog.Endpoint{AddrPort: address}
		}
	}
	return listen
}

func checkCommand() *cobra.Command {
	var file, target string
	var options check.Options
	cmd := &cobra.Command{
		Use:   "check --config FILE",
		Short: "Open one connection as the agent would, and print its subflows or paths",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadAgent(file)
			if err != nil {
				return cmdline.Exit(cmdline.BadInput, err)
			}
			if target != "" {
				if options.Target, err = netip.ParseAddrPort(target); err != nil {
					return cmdline.Exit(cmdline.BadInput, fmt.Errorf("--target: %q is not ADDRESS:PORT with a numeric address", target))
				}
			}
			if options.Timeout <= 0 || options.WaitSubflows < 0 {
				return cmdline.Exit(cmdline.BadInput, fmt.Errorf("--timeout and --wait-subflows must be positive"))
			}
			dialer := agent.NewDialer(c)
			if err := dialer.Options.Probe(); err != nil {
				cmdline.PrintJSON(cmd.OutOrStdout(), failed{Error: err.Error()})
				return cmdline.Exit(cmdline.NotReady, err)
			}
			var result check.Result
			if c.Transport == config.MPFlex {
				result = check.RunSession(cmd.Context(), c, options)
			} else {
				result = check.Run(cmd.Context(), c, dialer, options)
			}
			cmdline.PrintJSON(cmd.OutOrStdout(), result)
			if !result.OK {
				return cmdline.Exit(cmdline.Failed, nil)
			}
			return nil
		},
	}
	cmdline.ConfigFlag(cmd, &file)
	cmd.Flags().StringVar(&target, "target", "", "connect to this `ADDRESS:PORT` (default: the proxy's own echo service)")
	cmd.Flags().IntVar(&options.WaitSubflows, "wait-subflows", 0, "wait until the connection has `N` subflows, the session `N` paths")
	cmd.Flags().DurationVar(&options.Timeout, "timeout", 3*time.Second, "give up after this time")
	return cmd
}

// failed is the output of check if no connection could be tried.
type failed struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

func announce(w io.Writer, line readyLine) {
	line.Event, line.PID = "ready", os.Getpid()
	cmdline.PrintJSON(w, line)
}
