package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mplab/linkem/internal/exit"
	"mplab/linkem/internal/record"
	"mplab/linkem/internal/trace"
)

func traceCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "trace",
		Short: "Check and make packet-delivery traces",
		Long: `Check and make packet-delivery traces in the format of Mahimahi: a line is a
whole number of milliseconds since the beginning, and an opportunity to deliver
one packet of 1500 bytes. The last line is the length of the trace, which is
repeated for ever.

A command that makes a trace also writes FILE.yaml, which documents how.`,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(traceCheckCommand(), traceConstantCommand(), traceWalkingCommand(), traceDrivingCommand())
	return command
}

func traceCheckCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "check FILE…",
		Short: "Report the rates of packet-delivery traces, or their errors",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(command, fmt.Errorf("no FILE is given"))
			}
			return nil
		},
		RunE: func(command *cobra.Command, files []string) error {
			for _, file := range files {
				t, err := trace.Load(file)
				if err != nil {
					return exit.With(exit.Config, err)
				}
				if !asJSON {
					_, _ = fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", file, t.Summarise())
					continue
				}
				line, _ := json.Marshal(struct {
					File string `json:"file"`
					trace.Summary
				}{file, t.Summarise()})
				_, _ = fmt.Fprintln(command.OutOrStdout(), string(line))
			}
			return nil
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per file")
	return command
}

// making holds the flags that all commands that make a trace share.
type making struct {
	out, title, source string
}

func (m *making) flags(command *cobra.Command, title, source string) {
	m.source = source
	command.Flags().StringVar(&m.out, "out", "", "`FILE` to write; it must not exist")
	command.Flags().StringVar(&m.title, "title", title, "`TEXT` that describes the trace in FILE.yaml")
}

// save writes the trace and prints its summary.
func (m *making) save(command *cobra.Command, t *trace.Trace, origin trace.Origin) error {
	if err := t.Save(m.out, origin); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", m.out, t.Summarise())
	return nil
}

// finish saves the trace of a model, or returns the error in its parameters. arguments reproduce the trace.
func (m *making) finish(command *cobra.Command, made *trace.Trace, err error, arguments ...string) error {
	if err != nil {
		return usageError(command, err)
	}
	origin := trace.Origin{Title: m.title, Source: m.source}
	origin.MadeBy = strings.Join(append([]string{command.CommandPath()}, arguments...), " ")
	return m.save(command, made, origin)
}

func traceConstantCommand() *cobra.Command {
	var m making
	var kbps int
	command := &cobra.Command{
		Use:   "constant --kbps RATE --out FILE",
		Short: "Make a packet-delivery trace of a constant rate",
		RunE: func(command *cobra.Command, _ []string) error {
			if err := need(command, "kbps", "out"); err != nil {
				return err
			}
			made, err := trace.Constant(kbps)
			return m.finish(command, made, err, "--kbps", strconv.Itoa(kbps))
		},
	}
	m.flags(command, "A constant rate", "none: opportunities as even as whole milliseconds allow")
	command.Flags().IntVar(&kbps, "kbps", 0, "`RATE` of IP bytes in kbit/s, in packets of 1500 bytes")
	return command
}

func traceWalkingCommand() *cobra.Command {
	var m making
	w := trace.Walking{}
	command := &cobra.Command{
		Use:   "walking --out FILE",
		Short: "Make a packet-delivery trace of a phone that leaves WiFi coverage and returns",
		RunE: func(command *cobra.Command, _ []string) error {
			if err := need(command, "out"); err != nil {
				return err
			}
			made, err := w.Make()
			levels := strings.Trim(strings.ReplaceAll(fmt.Sprint(w.LevelsKbps), " ", ","), "[]")
			return m.finish(command, made, err, "--levels", levels, "--step", strconv.Itoa(w.StepMs), "--stay", decimal(w.Stay),
				"--seconds", strconv.Itoa(w.Seconds), "--seed", strconv.FormatUint(w.Seed, 10))
		},
	}
	m.flags(command, "Walking past access points, WiFi",
		"a Markov chain over levels of signal that steps to a neighbour; not fitted to measurements. Of the levels downstream, 15 Mbit/s and 300 kbit/s are those between which the link condition walking drifts (baerts2015 §6.1)")
	command.Flags().IntSliceVar(&w.LevelsKbps, "levels", []int{15_000, 10_000, 5_000, 2_000, 300, 0}, "`RATES` of the levels in kbit/s, from the best to the worst")
	command.Flags().IntVar(&w.StepMs, "step", 1000, "minimum duration of a level in `MS`")
	command.Flags().Float64Var(&w.Stay, "stay", 0.6, "`CHANCE` that a level lasts a step longer")
	command.Flags().IntVar(&w.Seconds, "seconds", 60, "length in `S`")
	command.Flags().Uint64Var(&w.Seed, "seed", 1, "`SEED` of the random numbers; the same seed makes the same trace")
	return command
}

func traceDrivingCommand() *cobra.Command {
	var m making
	d := trace.Driving{}
	command := &cobra.Command{
		Use:   "driving --out FILE",
		Short: "Make a packet-delivery trace of a cellular link on the move",
		RunE: func(command *cobra.Command, _ []string) error {
			if err := need(command, "out"); err != nil {
				return err
			}
			made, err := d.Make()
			return m.finish(command, made, err, "--most", decimal(d.MostKbps), "--sigma", decimal(d.SigmaKbps), "--escape", decimal(d.Escape),
				"--seconds", strconv.Itoa(d.Seconds), "--seed", strconv.FormatUint(d.Seed, 10))
		},
	}
	m.flags(command, "Driving, cellular",
		"the stochastic model of a cellular link in Sprout (Winstein, Sivaraman, Balakrishnan: NSDI 2013, §3.1): Poisson deliveries whose rate wanders in Brownian motion, with outages; its parameters are those of the paper unless made_by says others")
	command.Flags().Float64Var(&d.MostKbps, "most", 12_000, "highest `RATE` in kbit/s (Sprout: 1000 packets/s)")
	command.Flags().Float64Var(&d.SigmaKbps, "sigma", 2_400, "standard deviation of the `RATE` in kbit/s after a second (Sprout: 200 packets/s)")
	command.Flags().Float64Var(&d.Escape, "escape", 1, "`RATE` per second at which an outage ends (Sprout: 1)")
	command.Flags().IntVar(&d.Seconds, "seconds", 60, "length in `S`")
	command.Flags().Uint64Var(&d.Seed, "seed", 1, "`SEED`")
	return command
}

func recordCommand() *cobra.Command {
	var m making
	var skip, duration float64
	options := record.Options{}
	command := &cobra.Command{
		Use:   "record CAPTURE --out FILE",
		Short: "Turn a capture of a saturated path into a packet-delivery trace",
		Long: `Turn a capture (pcap or pcapng, plain or compressed) into a packet-delivery
trace: the packets of full size that a saturating flow gets through a path are
the opportunities of that path (deng2014 §5).

The capture must have been made where the packets arrived, with receive offload
(GRO, LRO) off, and the flow must have saturated the path: a bulk transfer over
TCP, or UDP faster than the path. TCP needs a while to get there; leave its slow
start out by --skip.

The flow is the one that carries the most, with everything of TCP and UDP
between the same two addresses.`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(command, fmt.Errorf("give one CAPTURE"))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			if err := need(command, "out"); err != nil {
				return err
			}
			if options.Direction != record.Down && options.Direction != record.Up {
				return usageError(command, fmt.Errorf("--direction is %s or %s, not %q", record.Down, record.Up, options.Direction))
			}
			const longest = trace.LongestMs / 1000
			if !(skip >= 0 && skip <= longest && duration >= 0 && duration <= longest) {
				return usageError(command, fmt.Errorf("--skip and --duration are from 0 to %d seconds", longest))
			}
			options.Skip, options.Duration = seconds(skip), seconds(duration)
			return runRecord(command, &m, args[0], options)
		},
	}
	m.flags(command, "", "")
	command.Flags().StringVar(&options.Direction, "direction", record.Down, "`down`: towards the side that opened the flow; up: from it")
	command.Flags().Float64Var(&skip, "skip", 0, "`S` to leave out after the first packet of full size")
	command.Flags().Float64Var(&duration, "duration", 0, "`S` to use after that; 0: to the end")
	return command
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func runRecord(command *cobra.Command, m *making, capture string, options record.Options) error {
	result, err := record.Capture(capture, options)
	if err != nil {
		return err
	}
	origin := result.Origin(capture, options)
	if m.title != "" {
		origin.Title = m.title
	}
	origin.MadeBy = fmt.Sprintf("linkem record %s --direction %s --skip %s --duration %s", filepath.Base(capture), options.Direction,
		decimal(options.Skip.Seconds()), decimal(options.Duration.Seconds()))
	warn := func(format string, args ...any) {
		_, _ = fmt.Fprintf(command.ErrOrStderr(), "linkem: %s: %s\n", capture, fmt.Sprintf(format, args...))
	}
	if result.Cut {
		warn("the capture ends inside a record; what came before is used")
	}
	if result.Bundles > 0 {
		warn("%d bundles of packets by receive offload: their packets get one time; turn off GRO and LRO where the capture is made", result.Bundles)
	}
	if result.MTU < usualMTU {
		warn("full packets have only %d bytes, and each becomes an opportunity for %d", result.MTU, trace.MTU)
	}
	_, _ = fmt.Fprintf(command.OutOrStdout(), "%s, %d packets of full size, %d smaller ones left out\n", result.Flow, result.Full, result.Small)
	return m.save(command, result.Trace, origin)
}

// usualMTU is the minimum size of full packets on paths with tunnels, in IP bytes.
const usualMTU = 1400

func decimal(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
