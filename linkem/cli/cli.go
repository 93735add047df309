package cli

import (
	"context"
	"fmt"
	"io"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"mplab/linkem/internal/emulator"
	"mplab/linkem/internal/exit"
)

// Version is what --version prints.
var Version = "unknown"

// Main runs the program with the arguments after its name and returns its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "linkem:", err)
	}
	return exit.Code(err)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:     "linkem",
		Version: Version,
		Short:   "Emulate network links between pairs of interfaces, and probe links",
		Long: `linkem emulates network links: it relays Ethernet frames between pairs of
interfaces with a rate or a packet-delivery trace, a queue, a delay, jitter,
loss, reordering and duplication in each direction, all of which can be changed
while it runs.

It also probes a link (round-trip time, rate in both directions and loss, over
UDP from one interface), and checks, makes and records packet-delivery traces.

Exit codes: 0 ok, 1 failed, 2 bad configuration or command line,
3 an interface does not exist.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return usageError(command, err) })
	root.AddCommand(runCommand(), probeServerCommand(), probeCommand(), recordCommand(), traceCommand())
	refuseArguments(root)
	return root
}

// refuseArguments makes every command without an argument check refuse arguments.
func refuseArguments(command *cobra.Command) {
	if command.Args == nil {
		command.Args = func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(command, fmt.Errorf("unexpected argument %q", args[0]))
			}
			return nil
		}
	}
	for _, sub := range command.Commands() {
		refuseArguments(sub)
	}
}

// usageError returns an error for a wrong command line.
func usageError(command *cobra.Command, err error) error {
	return exit.With(exit.Config, fmt.Errorf("%w (see: %s --help)", err, command.CommandPath()))
}

// need returns an error if a required flag is missing.
func need(command *cobra.Command, flags ...string) error {
	for _, flag := range flags {
		if !command.Flags().Changed(flag) {
			return usageError(command, fmt.Errorf("--%s is missing", flag))
		}
	}
	return nil
}

func runCommand() *cobra.Command {
	var file, socket string
	command := &cobra.Command{
		Use:   "run --config FILE --control SOCKET",
		Short: "Emulate the links of a configuration file",
		Long: `Relay between the pairs of interfaces in FILE, until SIGTERM. It prints
{"event":"ready"} when the links are up.

FILE is JSON:

  {"seed": 1,
   "links": [
     {"name": "wlan0", "a": "wlan-phone", "b": "wlan-router",
      "up":   {"rate_kbps": 2020, "delay_ms": 25, "loss_percent": 0.5,
               "queue": {"bytes": 150000}},
      "down": {"rate_kbps": 7040, "delay_ms": 25, "jitter_ms": 2,
               "queue": {"packets": 100}}},
     {"name": "wan", "a": "wan-proxy", "b": "wan-origin", "up": {}, "down": {},
      "delay_by_prefix": {"10.65.0.2/32": 2.0}}]}

  up        a → b; down is b → a. Both are required; {} lets everything pass.
  rate_kbps of IP bytes; 0 or absent: unlimited. Or trace: the absolute path of
            a packet-delivery trace, which begins with the program and with apply.
  queue     in bytes or packets; 150 kB with a rate if absent. discipline:
            drop-tail, codel or fq_codel, with target_ms and interval_ms.
  delay_ms  one way. jitter_ms: uniform in ± this, never reordering, or by
            jitter_distribution: uniform, normal, pareto, paretonormal.
  loss_percent  independently, or loss_model: {"p_percent", "r_percent",
            "good_loss_percent", "bad_loss_percent"} of Gilbert and Elliott.
  reorder_percent of packets skip the delay; duplicate_percent come twice.
  middlebox strip-mptcp: removes the options of Multipath TCP from SYN segments.
  delay_by_prefix  one-way delay added, both ways, by the longest prefix of the
            address on side b.

SOCKET (mode 0600) takes one JSON object a line and answers each with one:

  {"op":"apply","link":"wlan0","up":{…},"down":{…},"seed":7}
  {"op":"apply","link":"wlan0","up":{…},"down":{…},"continue":true}
  {"op":"state"}
  {"op":"counters"}`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := need(command, "config", "control"); err != nil {
				return err
			}
			return emulator.Run(command.Context(), file, socket, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	command.Flags().StringVar(&file, "config", "", "configuration `FILE` (JSON)")
	command.Flags().StringVar(&socket, "control", "", "path of the control `SOCKET` to make")
	return command
}
