// Command mpflex-bench compares MPFlex with kernel MPTCP, with plain TCP and with its strongest rival on emulated
// links, and prints Markdown. It creates network namespaces, as root or in a user namespace, which vanish with the
// program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/record"
	"mplab/bench/mpflex/report"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/role"
	"mplab/bench/mpflex/rounds"
	"mplab/bench/mpflex/workload"
)

// Exit codes.
const (
	exitFailed      = 1
	exitBadInput    = 2
	exitUnavailable = 3 // the machine does not permit private namespaces
)

func main() {
	if code, played := role.Play(); played {
		os.Exit(code)
	}
	inside, err := rig.Inside()
	if err == nil {
		var code int
		if code, err = start(inside); err == nil {
			os.Exit(code)
		}
	}
	fmt.Fprintln(os.Stderr, "mpflex-bench:", err)
	os.Exit(exitFailed)
}

// start parses the command line. The outer process then enters the private namespaces; the inner one measures.
func start(inside bool) (int, error) {
	c, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0, nil
	case err != nil:
		fmt.Fprintln(os.Stderr, "mpflex-bench:", err)
		return exitBadInput, nil
	case c.render != "":
		return 0, render(c.render)
	case inside && c.scale > 0:
		return 0, measureScale(c.scale)
	case inside:
		return 0, measure(c)
	}
	if err := rig.Unavailable(); err != nil {
		fmt.Fprintln(os.Stderr, "mpflex-bench:", err)
		return exitUnavailable, nil
	}
	return rig.Enter()
}

// command is the parsed command line.
type command struct {
	rounds.Options
	json   string
	render string
	scale  float64
}

func parse(args []string) (command, error) {
	flags := flag.NewFlagSet("mpflex-bench", flag.ContinueOnError)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(flags.Output(), "mpflex-bench measures and prints Markdown; progress goes to stderr.\n\nWorkloads: [up/]KIND[@LINKS], where KIND is %s.\n\n", workload.Forms())
		flags.PrintDefaults()
	}
	runs := flags.Int("runs", rounds.DefaultRuns, fmt.Sprintf("measure everything `N` times; methods for reference at most %d times", rounds.ReferenceRuns))
	quick := flags.Bool("quick", false, fmt.Sprintf("%d runs of a few workloads of every sort, unless -runs or -workloads say otherwise", rounds.QuickRuns))
	workloads := flags.String("workloads", "", "a `LIST` separated by commas (default: those of the whole benchmark)")
	methods := flags.String("methods", "", "a `LIST` of NAME or NAME/CONGESTION (default: all)")
	file := flags.String("json", "", "write every measurement to `FILE`, one JSON object a line")
	seed := flags.Uint64("seed", 1, "of the order of the methods, the random loss and the bytes")
	stored := flags.String("render", "", "measure nothing; print the report of a `FILE` that -json wrote")
	scaled := flags.Float64("scale", 0, "measure instead what 10,000 connections and 100 clients cost in memory, times this `FACTOR`, 0.001 to 1")
	if err := flags.Parse(args); err != nil {
		return command{}, err
	}
	if flags.NArg() > 0 {
		return command{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	c := command{json: *file, render: *stored, scale: *scaled}
	if given["scale"] && !(c.scale >= 0.001 && c.scale <= 1) {
		return c, fmt.Errorf("scale: %v is not within 0.001 and 1", c.scale)
	}
	c.Runs, c.Seed, c.Gap = *runs, *seed, rounds.DefaultGap
	if *quick && !given["runs"] {
		c.Runs = rounds.QuickRuns
	}
	list := strings.Join(workload.Default(), ",")
	switch {
	case *workloads != "":
		list = *workloads
	case *quick:
		list = strings.Join(workload.Quick(), ",")
	}
	var err error
	if c.Workloads, err = workload.ParseList(list); err != nil {
		return c, err
	}
	c.Methods = method.All()
	if *methods != "" {
		if c.Methods, err = method.ParseList(*methods); err != nil {
			return c, err
		}
	}
	return c, c.Check()
}

// measure runs the benchmark and prints its report, even if the run was ended early.
func measure(c command) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	results := &record.Results{}
	lines := json.NewEncoder(io.Discard)
	if c.json != "" {
		file, err := os.Create(c.json)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // every line is written already, or its error was told
		lines = json.NewEncoder(file)
	}
	times := c.Times()
	fmt.Fprintf(os.Stderr, "about %v, at most %v\n", times.Expected.Round(time.Second), times.Bound.Round(time.Second))
	err := rounds.Run(ctx, c.Options, func(r any) error {
		results.Add(r)
		return lines.Encode(r)
	}, os.Stderr)
	if len(results.Measurements) > 0 {
		fmt.Print(report.Markdown(results))
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("ended early: %w", err)
	}
	return err
}

func render(file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	results, err := record.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Print(report.Markdown(results))
	return nil
}
