package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"mplab/control"
	"mplab/internal/cmdline"
	"mplab/mpflex/status"
)

const (
	// defaultInterval is the interval of --watch without a value.
	defaultInterval = "1s"
	// shortestInterval bounds the load on the watched program.
	shortestInterval = 50 * time.Millisecond
	// answerTimeout is how long the program may take to answer.
	answerTimeout = 10 * time.Second
	// clearScreen moves the cursor to the top left and clears the screen (ECMA-48 CUP,
	// ED).
	clearScreen = "\x1b[H\x1b[2J"
)

// watcher holds the options of `mpflex status`.
type watcher struct {
	path    string
	watch   string // "": once
	json    bool
	streams bool

	every    time.Duration // 0: once
	out      io.Writer
	terminal bool
}

func statusCommand() *cobra.Command {
	var w watcher
	cmd := &cobra.Command{
		Use:   "status --control PATH",
		Short: "Show the sessions, paths and streams of a running agent or proxy",
		Args:  cobra.MaximumNArgs(1), // the interval of --watch
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.complete(args); err != nil {
				return cmdline.Exit(cmdline.BadInput, err)
			}
			w.out = cmd.OutOrStdout()
			w.terminal = isTerminal(w.out)
			return w.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&w.path, "control", "", "the control socket of the program, its configuration's `PATH`")
	_ = cmd.MarkFlagRequired("control") // fails only for an unknown flag
	cmd.Flags().StringVar(&w.watch, "watch", "", "repeat every `INTERVAL`, with rates, until interrupted")
	cmd.Flags().Lookup("watch").NoOptDefVal = defaultInterval
	cmd.Flags().BoolVar(&w.json, "json", false, "print one JSON object per line, unformatted")
	cmd.Flags().BoolVar(&w.streams, "streams", false, "list each stream, and each connection outside of sessions")
	return cmd
}

// complete parses the interval, which may follow --watch as a separate argument.
func (w *watcher) complete(args []string) error {
	if err := control.CheckPath(w.path); err != nil {
		return fmt.Errorf("--control: %w", err)
	}
	if len(args) == 1 {
		if w.watch != defaultInterval {
			return fmt.Errorf("unexpected argument %q", args[0])
		}
		w.watch = args[0]
	}
	if w.watch == "" {
		return nil
	}
	every, err := time.ParseDuration(w.watch)
	if n, bare := strconv.ParseFloat(w.watch, 64); bare == nil {
		every, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || every < shortestInterval {
		return fmt.Errorf("--watch: %q is no interval, such as 2s or 500ms, of at least %s", w.watch, shortestInterval)
	}
	w.every = every
	return nil
}

// run shows the status once, or repeatedly with --watch.
func (w *watcher) run(ctx context.Context) error {
	client, err := control.Dial(ctx, w.path)
	switch {
	case errors.Is(err, control.ErrNotSocket):
		return cmdline.Exit(cmdline.BadInput, err)
	case err != nil:
		return cmdline.Exit(cmdline.NotReady, err)
	}
	defer client.Close() //nolint:errcheck // nothing is left to lose
	var earlier *status.Report
	ticker := time.NewTicker(max(w.every, shortestInterval))
	defer ticker.Stop()
	for {
		now, err := w.show(ctx, client, earlier)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return cmdline.Exit(cmdline.Failed, err)
		case w.every == 0:
			return nil
		}
		earlier = now
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// show requests the status once and prints it.
func (w *watcher) show(ctx context.Context, client *control.Client, earlier *status.Report) (*status.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("no answer within %s", answerTimeout))
	defer cancel()
	request := struct {
		Op string `json:"op"`
	}{"status"}
	if w.streams {
		request.Op = "streams"
	}
	var answer json.RawMessage
	if err := client.Ask(ctx, request, &answer); err != nil {
		return nil, err
	}
	if w.json {
		_, err := w.out.Write(append(answer, '\n'))
		return nil, err
	}
	report := &status.Report{}
	if err := json.Unmarshal(answer, report); err != nil {
		return nil, fmt.Errorf("this is not a status: %w", err)
	}
	var page bytes.Buffer
	switch {
	case w.every > 0 && w.terminal:
		page.WriteString(clearScreen)
	case earlier != nil:
		page.WriteString("\n")
	}
	if err := report.Write(&page, earlier); err != nil {
		return nil, err
	}
	_, err := w.out.Write(page.Bytes())
	return report, err
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
