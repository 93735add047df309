package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"

	"mplab/linkem/probe"
)

func probeServerCommand() *cobra.Command {
	var listen string
	command := &cobra.Command{
		Use:   "probe-server --listen ADDRESS:PORT",
		Short: "Answer probes",
		Long: `Answer probes over UDP, of several clients at once, until SIGTERM. It prints
{"event":"ready","listen":"…"} when it listens.

A client must receive a random token at its address before the server sends more
than it got, and what the server sends in one session is bounded: it cannot be
made to flood a third party.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := need(command, "listen"); err != nil {
				return err
			}
			return probe.Serve(command.Context(), listen, func(addr net.Addr) {
				line, _ := json.Marshal(map[string]string{"event": "ready", "listen": addr.String()})
				_, _ = fmt.Fprintf(command.OutOrStdout(), "%s\n", line)
			})
		},
	}
	command.Flags().StringVar(&listen, "listen", "", "UDP `ADDRESS:PORT` to listen on")
	return command
}

func probeCommand() *cobra.Command {
	var o probe.Options
	var asJSON bool
	command := &cobra.Command{
		Use:   "probe --device INTERFACE --server ADDRESS:PORT",
		Short: "Measure round-trip time, rates and loss of a link",
		Long: `Measure a link over UDP from one interface, against "linkem probe-server":
round-trip time by small echoes, then the rate down and up by a blast at 1.3
times the expected rate, then wait until the queue has drained.

Rates count IP bytes. Without an expected rate (0) that direction is not measured.
The loss is that of all echoes, there and back; a blast overflows the queue on
purpose, and its losses do not count.

Exit codes: 0 measured, 1 the server did not answer or the measurement failed,
2 bad command line.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := need(command, "server"); err != nil {
				return err
			}
			result, err := probe.Measure(command.Context(), o)
			if err != nil {
				return err
			}
			return printProbe(command.OutOrStdout(), result, asJSON)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Device, "device", "", "`INTERFACE` to measure from; by the routes if not given")
	flags.StringVar(&o.Server, "server", "", "`ADDRESS:PORT` of the probe server")
	flags.Float64Var(&o.DownKbps, "down-kbps", 0, "expected rate down, `KBIT/S`; 0: do not measure")
	flags.Float64Var(&o.UpKbps, "up-kbps", 0, "expected rate up, `KBIT/S`; 0: do not measure")
	flags.IntVar(&o.Pings, "pings", 20, "`NUMBER` of echoes for the round-trip time")
	flags.DurationVar(&o.PingPause, "ping-pause", 30*time.Millisecond, "`TIME` between two of them; longer on a slow link")
	flags.IntVar(&o.LossPackets, "loss-packets", 200, "`NUMBER` of further echoes for the loss, within a second; fewer on a slow link")
	flags.Float64Var(&o.Seconds, "seconds", 0.6, "`SECONDS` that each blast lasts")
	flags.DurationVar(&o.Timeout, "timeout", 3*time.Second, "`TIME` to wait for the server's first answer")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return command
}

func printProbe(w io.Writer, result probe.Result, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(result)
	}
	rate := func(kbps *float64) string {
		if kbps == nil {
			return "not measured"
		}
		return fmt.Sprintf("%.0f kbit/s", *kbps)
	}
	_, err := fmt.Fprintf(w, "RTT   %.2f ms median, %.2f ms min, %.2f ms p90, %d of %d answered\ndown  %s\nup    %s\nloss  %.2f %% of %d echoes\n",
		result.RTT.Median, result.RTT.Min, result.RTT.P90, result.RTT.Received, result.RTT.Sent,
		rate(result.DownKbps), rate(result.UpKbps), result.LossPercent, result.LossSent)
	return err
}
