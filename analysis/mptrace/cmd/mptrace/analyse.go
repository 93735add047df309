package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mplab/analysis/mptrace"
	"mplab/analysis/mptrace/internal/filter"
	"mplab/analysis/mptrace/internal/join/loopback"
	"mplab/analysis/mptrace/internal/payload/proxied"
	"mplab/analysis/mptrace/internal/payload/tlskeys"
	"mplab/analysis/mptrace/tables"
)

type analyseOptions struct {
	dir           string
	json, summary bool
	all           bool
	tables        []string
	threads       int
	reading
	joinLoopback bool
	redirectPort uint16
	logs         []string
	keys         []string
	passwordFile string
	xplot        string
	mptcptrace   string
	filter       string
	filtered     bool // there is a filter, perhaps an empty one
	follow       int  // seconds between two summaries of growing files
}

const analyseLong = `mptrace reads packet captures, merges them by time, and reports what each TCP
and Multipath TCP connection (versions 0 and 1) and each of its subflows did.

Captures are pcap or pcapng, also compressed by gzip or zstd; "-" is standard
input. Payload is not needed: lengths come from the headers. "up" is from the
client to the server. The same packet must not be in two of the files; phone
and proxy are compared by "mptrace ends".

  -o DIR      writes the tables as Parquet: DIR/connections.parquet and so on
  --json      prints the tables as one JSON object
  --summary   prints a summary as text; this is the default
  --follow    prints a summary of growing files every 5 seconds, until SIGINT

  --filter EXPRESSION   analyses only some connections. Terms, joined by "and":
      connection N       number N in the output of the same command without this
                         term
      token HEX          Multipath TCP: token or token_client
      address A[/LENGTH] client or server has this address, or one of this network
      port P             client or server has this port
      time FROM..TO      seconds since the first TCP segment, or RFC 3339; FROM or
                         TO can be empty
  address, port and time drop packets before the analysis, as a display filter
  does. So time cuts connections (their totals miss the other packets), and
  address cuts off the other subflows of a Multipath TCP connection. connection
  and token keep connections whole, and read the files twice: they need files,
  not pipes.

"mptrace schema" describes the tables and their columns.

Exit codes: 0 all was read; 1 a part could not be read (the rest was used and
the file is marked), or not all could be written; 2 nothing could be read, or
the command is wrong.`

var defaults = analyseOptions{threads: 3, reading: reading{samples: 1000}}

func newCommand() *cobra.Command {
	o := defaults
	command := &cobra.Command{
		Use:   "mptrace FILE… [-o DIR] [--json] [--summary]",
		Short: "Tables of TCP and Multipath TCP connections from packet captures",
		Long:  analyseLong,
		Example: `  mptrace phone-wlan0.pcapng phone-rmnet0.pcapng -o tables
  mptrace capture --interface wlan0 --write phone-wlan0.pcapng
  mptrace ends --phone phone-wlan0.pcapng --proxy proxy.pcapng
  mptrace anonymise phone-wlan0.pcapng -o anonymous.pcapng
  tcpdump -i any -s 128 -w - tcp | mptrace - --summary`,
		Version:       version,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error {
			o.filtered = c.Flags().Changed("filter")
			if c.Flags().Changed("follow") {
				if o.follow < 1 {
					return fmt.Errorf("--follow %d: want 1 second or more", o.follow)
				}
				return follow(args, o, c.OutOrStdout())
			}
			return analyse(args, o, c.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.dir, "output", "o", "", "write the tables as Parquet into this directory")
	flags.BoolVar(&o.json, "json", false, "print the tables as JSON")
	flags.BoolVar(&o.summary, "summary", false, "print a summary for people")
	flags.BoolVar(&o.all, "all", false, "list every connection in the summary, not only the largest")
	flags.StringSliceVar(&o.tables, "tables", nil, "tables to write or print, or all (default: all are written, the small ones printed)")
	flags.StringVar(&o.filter, "filter", "", "analyse only connections that match, such as 'address 10.0.0.0/8 and port 443'")
	flags.IntVar(&o.follow, "follow", 0, "analyse growing files until SIGINT, with a summary every `SECONDS`")
	flags.Lookup("follow").NoOptDefVal = strconv.Itoa(followSeconds)
	flags.IntVar(&o.samples, "samples", o.samples, "round trips, bursts and points kept for each direction before they are thinned (-1: all)")
	flags.IntVar(&o.threads, "threads", o.threads, "parallel stages: 1, 2, or 3 (reading, TCP, connections); the output does not depend on it")
	o.reading.flags(flags)
	flags.BoolVar(&o.joinLoopback, "join-loopback", false, "join the halves that a transparent redirect shows on a loopback interface")
	flags.Uint16Var(&o.redirectPort, "redirect-port", 0, "port of that redirect (default: detected)")
	flags.StringSliceVar(&o.logs, "proxy-log", nil, "connection log of agent or proxy (JSON lines): where proxied connections go")
	flags.StringSliceVar(&o.keys, "keys", nil, "TLS key log (as SSLKEYLOGFILE makes it): web objects, where payload was captured")
	flags.StringVar(&o.passwordFile, "shadowsocks-password", "", "file with the password of a ShadowSocks proxy with table cipher")
	flags.StringVar(&o.xplot, "xplot", "", "write time-sequence, RTT and throughput graphs for xplot into this directory")
	flags.StringVar(&o.mptcptrace, "mptcptrace-compat", "", "write the files that mptcptrace writes into this directory")
	command.AddCommand(newCaptureCommand(), newEndsCommand(), newAnonymiseCommand(), newSchemaCommand(), newManCommand())
	return command
}

var errNoCapture = errors.New("no capture given; see mptrace --help")

func analyse(names []string, o analyseOptions, stdout io.Writer) error {
	if len(names) == 0 {
		return errNoCapture
	}
	if o.json && o.summary {
		return errors.New("--json and --summary exclude each other")
	}
	options, err := o.options()
	if err != nil {
		return err
	}
	if options.Filter != nil && options.Filter.Named() {
		if err := onlyFiles(names, "--filter: connection and token read the captures twice"); err != nil {
			return err
		}
	}
	result, err := mptrace.Analyse(names, options)
	if errors.Is(err, tables.ErrRows) {
		err = fmt.Errorf("--json: more than %d rows. Write them as Parquet with -o DIR, or choose tables with --tables", mostRows)
	}
	if err != nil {
		return &exitError{exitPartial, err}
	}
	bad := tellUnread(result.Files)
	if mptrace.Unreadable(result.Files) {
		return &exitError{code: exitBadInput}
	}
	if err := o.print(result, &options, stdout); err != nil {
		return &exitError{exitPartial, err}
	}
	if bad {
		return &exitError{code: exitPartial}
	}
	return nil
}

// onlyFiles returns an error if one of the captures is a pipe. reason says why
// it must be a file.
func onlyFiles(names []string, reason string) error {
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" || err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket|os.ModeCharDevice) != 0 {
			return fmt.Errorf("%s, but %s is not a file. Write it to a file first", reason, name)
		}
	}
	return nil
}

// tellUnread logs the files that were not read to their end, and reports
// whether there are any.
func tellUnread(files []tables.File) bool {
	bad := false
	for _, f := range files {
		if f.Partial {
			fmt.Fprintf(os.Stderr, "mptrace: %s: %s\n", f.Name, f.Error)
			bad = true
		}
	}
	return bad
}

// options converts the flags into options before any capture is opened.
func (o *analyseOptions) options() (mptrace.Options, error) {
	chosen, err := tables.ParseSet(o.tables)
	if err != nil {
		return mptrace.Options{}, fmt.Errorf("--tables: %w", err)
	}
	if o.threads < 1 {
		return mptrace.Options{}, fmt.Errorf("--threads %d: want 1 or more", o.threads)
	}
	a := mptrace.Options{
		Threads: o.threads, Samples: o.samples, Directory: o.dir, Tables: chosen, Xplot: o.xplot, MPTCPTrace: o.mptcptrace,
	}
	switch {
	case o.json && chosen == 0:
		a.Keep, a.KeepRows = tables.Small, mostRows
	case o.json:
		a.Keep, a.KeepRows = chosen, mostRows
	case o.prints():
		a.Summary = tables.NewSummary(o.limit())
	}
	if a.Source, a.Network, err = o.reading.options(); err != nil {
		return a, err
	}
	if o.filtered {
		if a.Filter, err = filter.Parse(o.filter); err != nil {
			return a, fmt.Errorf("--filter: %w", err)
		}
		if a.Summary != nil {
			a.Summary.Filter = a.Filter.String()
		}
	}
	if o.joinLoopback || o.redirectPort != 0 {
		a.Loopback = &loopback.Options{Port: o.redirectPort}
		if a.Summary != nil {
			a.Summary.Rewritten = true
		}
	}
	return a, o.evidence(&a)
}

// mostRows is the maximum number of rows that --json holds in memory before it
// prints them: about 1 GB.
const mostRows = 1_000_000

// limit returns the number of connections in the summary, as tables.NewSummary
// takes it.
func (o *analyseOptions) limit() int {
	if o.all {
		return -1
	}
	return 0
}

func (o *analyseOptions) prints() bool {
	return o.json || o.summary || (o.dir == "" && o.xplot == "" && o.mptcptrace == "")
}

// evidence opens the logs, the TLS keys and the password file.
func (o *analyseOptions) evidence(a *mptrace.Options) (err error) {
	if len(o.logs) > 0 {
		if a.Log, err = proxied.Open(o.logs...); err != nil {
			return err
		}
	}
	if len(o.keys) > 0 {
		if a.Keys, err = tlskeys.Open(o.keys...); err != nil {
			return err
		}
	}
	if o.passwordFile != "" {
		b, err := os.ReadFile(o.passwordFile)
		if err != nil {
			return err
		}
		a.Table = proxied.NewTable(strings.TrimRight(string(b), "\r\n"))
	}
	return nil
}

func (o *analyseOptions) print(result *tables.Result, options *mptrace.Options, stdout io.Writer) error {
	if !o.prints() {
		return nil
	}
	w := bufio.NewWriter(stdout)
	var err error
	if o.json {
		err = result.WriteJSON(w, options.Keep)
	} else {
		err = options.Summary.Write(w, result.Files, &result.Warnings)
	}
	if errors.Is(err, tables.ErrConnections) {
		return fmt.Errorf("--all: %w. Write them as Parquet with -o DIR", err)
	}
	if err != nil {
		return err
	}
	return w.Flush()
}
