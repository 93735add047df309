package cli

import (
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"mplab/internal/cmdline"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/measure/udpjitter"
)

func udpEchoCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "udp-echo --listen ADDRESS:PORT",
		Short: "Answer the probes of udp-jitter",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := parseAddress("listen", listen)
			if err != nil {
				return err
			}
			echo, err := udpjitter.ListenEcho(cmd.Context(), address)
			if err != nil {
				return cmdline.Exit(cmdline.NotReady, err)
			}
			announce(cmd.OutOrStdout(), readyLine{
				Role: "udp-echo", Listen: map[string]connlog.Endpoint{"udp": {AddrPort: echo.Addr()}},
			})
			echo.Run(cmd.Context())
			return nil
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "the `ADDRESS:PORT` to answer at")
	_ = cmd.MarkFlagRequired("listen") // fails only for an unknown flag
	return cmd
}

// jitterOutput is the JSON output of udp-jitter.
type jitterOutput struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	udpjitter.Result
}

func udpJitterCommand() *cobra.Command {
	var target, socks string
	var seconds float64
	var asJSON bool
	var options udpjitter.Options
	cmd := &cobra.Command{
		Use:   "udp-jitter --target ADDRESS:PORT",
		Short: "Send datagrams at a regular pace to a udp-echo, and report loss, delay and jitter",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if options.Target, err = parseAddress("target", target); err != nil {
				return err
			}
			if socks != "" {
				if options.Socks, err = parseAddress("socks", socks); err != nil {
					return err
				}
			}
			if !(seconds > 0 && seconds <= 86_400) {
				return cmdline.Exit(cmdline.BadInput, fmt.Errorf("--seconds: %v is not above 0 and at most 86400", seconds))
			}
			options.Duration = time.Duration(math.Round(seconds * float64(time.Second)))
			if err := options.Check(); err != nil {
				return cmdline.Exit(cmdline.BadInput, err)
			}
			result, err := udpjitter.Run(cmd.Context(), options)
			if asJSON {
				output := jitterOutput{OK: err == nil, Result: result}
				if err != nil {
					output.Error, err = err.Error(), cmdline.Exit(cmdline.Failed, nil)
				}
				cmdline.PrintJSON(cmd.OutOrStdout(), output)
				return err
			}
			if err != nil {
				return cmdline.Exit(cmdline.Failed, err)
			}
			printJitter(cmd.OutOrStdout(), result)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&target, "target", "", "the `ADDRESS:PORT` of the udp-echo")
	flags.StringVar(&socks, "socks", "", "go through the SOCKS5 server at this `ADDRESS:PORT`")
	flags.IntVar(&options.Size, "size", 100, "`BYTES` of a datagram, without IP and UDP headers")
	flags.DurationVar(&options.Period, "period", 10*time.Millisecond, "time between two datagrams")
	flags.Float64Var(&seconds, "seconds", 10, "send for this time")
	flags.DurationVar(&options.Gap, "gap", 0, "minimum duration of a gap (default: ten periods)")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	_ = cmd.MarkFlagRequired("target") // fails only for an unknown flag
	return cmd
}

func parseAddress(flag, text string) (netip.AddrPort, error) {
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}, cmdline.Exit(cmdline.BadInput, fmt.Errorf("--%s: %q is not ADDRESS:PORT with a numeric address", flag, text))
	}
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port()), nil
}

// printJitter prints a result as text.
func printJitter(w io.Writer, r udpjitter.Result) {
	print := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) } // an error cannot be reported
	print("%d datagrams of %d bytes in %.1f s, %d answered; one left %.2f ms late at most\n", r.Sent, r.Size, r.Duration, r.Answered, r.LateMs.Max)
	for _, d := range []struct {
		name string
		udpjitter.Direction
	}{{"up", r.Up}, {"down", r.Down}} {
		print("%-5s lost %d (%.2f %%), reordered %d (%.2f %%), jitter %.2f ms, delay varies by %.2f ms (standard deviation)\n",
			d.name, d.Lost, d.LostPercent, d.Reordered, d.ReorderedPercent, d.JitterMs, d.Variation.Stdev)
	}
	print("RTT   median %.2f ms, 5th to 95th percentile %.2f to %.2f ms, at most %.2f ms\n", r.RTT.Median, r.RTT.P5, r.RTT.P95, r.RTT.Max)
	print("gaps  %d of %.0f ms or longer, the longest silence %.0f ms\n", r.GapCount, r.GapMs, r.LongestGap)
	if !r.Certain {
		print("The server did not report its totals: datagrams lost at the end count as lost on the way up.\n")
	}
}
