package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"mplab/analysis/mptrace"
	"mplab/analysis/mptrace/tables"
)

type analyseOptions struct {
	dir           string
	json, summary bool
}

func newCommand() *cobra.Command {
	var o analyseOptions
	command := &cobra.Command{
		Use:   "mptrace FILE… [-o DIR] [--json] [--summary]",
		Short: "Tables of TCP and Multipath TCP connections from packet captures",
		Long: `mptrace reads packet captures, merges them by time, and says what each TCP and
Multipath TCP connection and each of its subflows did.

Captures are pcap or pcapng, also compressed by gzip or zstd; "-" is standard
input. Payload is not needed: lengths come from the headers. "up" is from the
client to the server.

  -o DIR      writes DIR/connections.parquet and DIR/subflows.parquet
  --json      prints the same rows as one JSON object
  --summary   prints them for people; this is what happens when nothing is asked

Exit codes: 0 all was read; 1 a part could not be read (the rest was used and
the file is marked); 2 nothing could be read, or the command is wrong.`,
		Example: `  mptrace phone-wlan0.pcapng phone-rmnet0.pcapng -o tables
  mptrace capture --interface wlan0 --write phone-wlan0.pcapng
  tcpdump -i any -s 128 -w - tcp | mptrace - --summary`,
		Version:       version,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, args []string) error { return analyse(args, o, c.OutOrStdout()) },
	}
	command.Flags().StringVarP(&o.dir, "output", "o", "", "write the tables as Parquet into this directory")
	command.Flags().BoolVar(&o.json, "json", false, "print the tables as JSON")
	command.Flags().BoolVar(&o.summary, "summary", false, "print a summary for people")
	command.CompletionOptions.DisableDefaultCmd = true
	command.AddCommand(newCaptureCommand())
	return command
}

func analyse(names []string, o analyseOptions, stdout io.Writer) error {
	if len(names) == 0 {
		return errors.New("no capture given; see mptrace --help")
	}
	if o.json && o.summary {
		return errors.New("--json and --summary exclude each other")
	}
	result := mptrace.Analyse(names)
	bad, unreadable := 0, 0
	for _, f := range result.Files {
		if !f.Partial {
			continue
		}
		fmt.Fprintf(os.Stderr, "mptrace: %s: %s\n", f.Name, f.Error)
		bad++
		if f.Packets == 0 {
			unreadable++
		}
	}
	if unreadable == len(names) {
		return &exitError{code: exitBadInput}
	}
	if err := write(result, o, stdout); err != nil {
		return &exitError{exitPartial, err}
	}
	if bad > 0 {
		return &exitError{code: exitPartial}
	}
	return nil
}

func write(result *tables.Result, o analyseOptions, stdout io.Writer) error {
	if o.dir != "" {
		if err := result.WriteParquet(o.dir); err != nil {
			return err
		}
	}
	if o.dir != "" && !o.json && !o.summary {
		return nil
	}
	w := bufio.NewWriter(stdout)
	print := result.WriteSummary
	if o.json {
		print = result.WriteJSON
	}
	if err := print(w); err != nil {
		return err
	}
	return w.Flush()
}
