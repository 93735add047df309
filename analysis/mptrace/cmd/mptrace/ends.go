package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"mplab/analysis/mptrace"
	"mplab/analysis/mptrace/internal/join/ends"
)

type endsOptions struct {
	phone, proxy []string
	dir          string
	json         bool
	all          bool
	sameClock    bool
	reading
}

func newEndsCommand() *cobra.Command {
	o := endsOptions{reading: defaults.reading}
	command := &cobra.Command{
		Use:   "ends --phone FILE,… --proxy FILE,… [-o DIR] [--json]",
		Short: "Compare the captures of both ends of the same connections",
		Long: `ends matches the packets that one end sent with those that the other end got:
the offset and drift between their clocks, one-way delays, the packets that
were really lost on each path, how long data waited for data before it, and
which copy of reinjected data came first.

The two ends are those between which the paths lie: the phone, usually with a
file for each interface, and the proxy.

  -o DIR   writes DIR/path_ends.parquet and so on, and DIR/ends.json (the clock)
  --json   prints all as one JSON object; without -o and --json: a summary

Exit codes: 0 all was read; 1 a part could not be read, or not all could be
written; 2 nothing could be read, the ends have no packet in common, or the
command is wrong.`,
		Example: "  mptrace ends --phone phone-wlan0.pcapng,phone-rmnet0.pcapng --proxy proxy.pcapng -o tables",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return compare(o, c.OutOrStdout()) },
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&o.phone, "phone", nil, "captures made at the phone")
	flags.StringSliceVar(&o.proxy, "proxy", nil, "captures made at the proxy")
	flags.StringVarP(&o.dir, "output", "o", "", "write the tables as Parquet into this directory")
	flags.BoolVar(&o.json, "json", false, "print the tables as JSON")
	flags.BoolVar(&o.all, "all", false, "the summary has every direction of a subflow, not only the 40 that sent most")
	flags.BoolVar(&o.sameClock, "same-clock", false, "both ends have one clock, as in the virtual lab")
	flags.IntVar(&o.samples, "samples", o.samples, "delays kept for each direction of a subflow before they are thinned (-1: all)")
	o.reading.flags(flags)
	_ = command.MarkFlagRequired("phone")
	_ = command.MarkFlagRequired("proxy")
	return command
}

func compare(o endsOptions, stdout io.Writer) error {
	in, rules, err := o.options()
	if err != nil {
		return err
	}
	r, err := ends.Match(o.phone, o.proxy, ends.Options{
		SameClock: o.sameClock, Samples: o.samples, Source: in, Network: rules.OfFlow,
	})
	bad := false
	if r != nil {
		bad = tellUnread(r.Phone)
		bad = tellUnread(r.Proxy) || bad
	}
	switch {
	case r != nil && (mptrace.Unreadable(r.Phone) || mptrace.Unreadable(r.Proxy)):
		return &exitError{code: exitBadInput}
	case errors.Is(err, ends.ErrNothing), errors.Is(err, ends.ErrSame):
		return &exitError{exitBadInput, err}
	case err != nil:
		return &exitError{exitPartial, err}
	}
	if o.json || o.dir != "" { // the summary contains the doubts
		for _, doubt := range r.Doubts {
			fmt.Fprintln(os.Stderr, "mptrace: ends:", doubt)
		}
	}
	if err := o.write(r, stdout); err != nil {
		return &exitError{exitPartial, err}
	}
	if bad {
		return &exitError{code: exitPartial}
	}
	return nil
}

func (o *endsOptions) write(r *ends.Result, stdout io.Writer) error {
	if o.dir != "" {
		if err := r.WriteFiles(o.dir); err != nil {
			return err
		}
	}
	w := bufio.NewWriter(stdout)
	var err error
	switch {
	case o.json:
		err = r.WriteJSON(w)
	case o.dir == "":
		limit := 0
		if o.all {
			limit = -1
		}
		err = r.WriteSummary(w, limit)
	}
	if err != nil {
		return err
	}
	return w.Flush()
}
