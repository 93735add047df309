package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mplab/mpflex/agent"
	"mplab/mpflex/check"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/policy"
	"mplab/mpflex/proxy"
)

// readyLine is what agent and proxy print once they serve.
type readyLine struct {
	Event     string                      `json:"event"` // "ready"
	Role      string                      `json:"role"`
	PID       int                         `json:"pid"`
	Listen    map[string]connlog.Endpoint `json:"listen"`
	Transport string                      `json:"transport,omitempty"`
	Plain     bool                        `json:"plain,omitempty"` // anybody on the way can read the session
	Proxy     *connlog.Endpoint           `json:"proxy,omitempty"`
}

func agentCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "agent --config FILE",
		Short: "Take redirected connections and DNS queries, and carry them to the proxy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadAgent(file)
			if err != nil {
				return &exitError{exitBadInput, err}
			}
			log, err := connlog.Open(c.Log)
			if err != nil {
				return &exitError{exitNotReady, err}
			}
			defer log.Close() //nolint:errcheck // every record is written already
			a, err := agent.New(cmd.Context(), c, log)
			var bad *policy.FileError
			if errors.As(err, &bad) {
				return &exitError{exitBadInput, err}
			}
			if err != nil {
				return &exitError{exitNotReady, err}
			}
			stop, err := a.Status().Serve(c.Control)
			if err != nil {
				return &exitError{exitNotReady, err}
			}
			defer stop()
			redirect, dns := a.Listening()
			line := readyLine{
				Role: "agent", Transport: c.Transport, Plain: c.Plain, Proxy: &connlog.Endpoint{AddrPort: c.Proxy.AddrPort},
				Listen: map[string]connlog.Endpoint{},
			}
			for name, address := range map[string]netip.AddrPort{"redirect": redirect, "dns": dns, "socks": a.ListeningSocks()} {
				if address.IsValid() {
					line.Listen[name] = connlog.Endpoint{AddrPort: address}
				}
			}
			announce(cmd.OutOrStdout(), line)
			a.Run(cmd.Context())
			return nil
		},
	}
	configFlag(cmd, &file)
	return cmd
}

func proxyCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "proxy --config FILE",
		Short: "Take carrying connections and connect them to their destinations",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadProxy(file)
			if err != nil {
				return &exitError{exitBadInput, err}
			}
			log, err := connlog.Open(c.Log)
			if err != nil {
				return &exitError{exitNotReady, err}
			}
			defer log.Close() //nolint:errcheck // every record is written already
			p, err := proxy.New(c, log)
			if err != nil {
				return &exitError{exitNotReady, err}
			}
			stop, err := p.Status().Serve(c.Control)
			if err != nil {
				return &exitError{exitNotReady, err}
			}
			defer stop()
			line := readyLine{Role: "proxy", Listen: map[string]connlog.Endpoint{}}
			for transport := range c.Listen.All() {
				if address := p.Listening(transport); address.IsValid() {
					line.Listen[transport] = connlog.Endpoint{AddrPort: address}
				}
			}
			announce(cmd.OutOrStdout(), line)
			p.Run(cmd.Context())
			return nil
		},
	}
	configFlag(cmd, &file)
	return cmd
}

func checkCommand() *cobra.Command {
	var file, target string
	var options check.Options
	cmd := &cobra.Command{
		Use:   "check --config FILE",
		Short: "Open one connection as the agent would, and print what it consists of",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadAgent(file)
			if err != nil {
				return &exitError{exitBadInput, err}
			}
			if target != "" {
				if options.Target, err = netip.ParseAddrPort(target); err != nil {
					return &exitError{exitBadInput, fmt.Errorf("--target: %q is not ADDRESS:PORT with a numeric address", target)}
				}
			}
			if options.Timeout <= 0 || options.WaitSubflows < 0 {
				return &exitError{exitBadInput, fmt.Errorf("--timeout and --wait-subflows must be positive")}
			}
			dialer := agent.NewDialer(c)
			if err := dialer.Options.Probe(); err != nil {
				printJSON(cmd.OutOrStdout(), failed{Error: err.Error()})
				return &exitError{exitNotReady, err}
			}
			var result check.Result
			if c.Transport == config.MPFlex {
				result = check.RunSession(cmd.Context(), c, options)
			} else {
				result = check.Run(cmd.Context(), c, dialer, options)
			}
			printJSON(cmd.OutOrStdout(), result)
			if !result.OK {
				return &exitError{exitFailed, nil}
			}
			return nil
		},
	}
	configFlag(cmd, &file)
	cmd.Flags().StringVar(&target, "target", "", "connect to this `ADDRESS:PORT` (default: the proxy's own echo service)")
	cmd.Flags().IntVar(&options.WaitSubflows, "wait-subflows", 0, "wait until the connection has `N` subflows, the session `N` paths")
	cmd.Flags().DurationVar(&options.Timeout, "timeout", 3*time.Second, "give up after this time")
	return cmd
}

// failed is what check prints when no connection could be tried.
type failed struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

func configFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", "", "the configuration `FILE` (JSON)")
	_ = cmd.MarkFlagRequired("config") // fails only for a flag that does not exist
}

func announce(w io.Writer, line readyLine) {
	line.Event, line.PID = "ready", os.Getpid()
	printJSON(w, line)
}

func printJSON(w io.Writer, value any) {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // nobody is left to tell
}
