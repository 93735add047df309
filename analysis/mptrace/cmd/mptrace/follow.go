package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"mplab/analysis/mptrace"
)

// followSeconds is the default time between two summaries of growing files.
const followSeconds = 5

// idleShare is the minimum time between two analyses, as a multiple of the time
// that the last one took. It bounds the use of the processor when the files are
// large: each analysis starts at the beginning.
const idleShare = 4

// follow analyses growing files again and again, and prints a summary whenever
// they have grown, until SIGINT or SIGTERM.
func follow(names []string, o analyseOptions, stdout io.Writer) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	return followUntil(names, o, stdout, func(d time.Duration) bool {
		select {
		case <-signals:
			signal.Stop(signals) // a second signal ends the last analysis, too
			return false
		case <-time.After(d):
			return true
		}
	})
}

// followUntil calls wait between two analyses; when wait returns false, one more
// analysis follows.
func followUntil(names []string, o analyseOptions, stdout io.Writer, wait func(time.Duration) bool) error {
	if len(names) == 0 {
		return errNoCapture
	}
	if o.json || o.xplot != "" || o.mptcptrace != "" {
		return errors.New("--follow prints summaries. Leave out --json, --xplot and --mptcptrace-compat")
	}
	if err := onlyFiles(names, "--follow reads the captures again and again"); err != nil {
		return err
	}
	var before []int64
	waiting := false
	for going := true; ; {
		start := time.Now()
		if now := sizes(names); !slices.Equal(now, before) {
			before = now
			text, err := o.summaryNow(names)
			switch {
			case err != nil:
				return err
			case text == nil && !waiting:
				waiting = true
				fmt.Fprintln(os.Stderr, "mptrace: no capture is readable yet; waiting")
			}
			if _, err := stdout.Write(text); err != nil {
				return &exitError{exitPartial, err}
			}
		}
		if !going {
			return nil
		}
		going = wait(max(time.Duration(o.follow)*time.Second, idleShare*time.Since(start)))
	}
}

// sizes returns the sizes of files; −1: there is no such file.
func sizes(names []string) []int64 {
	all := make([]int64, len(names))
	for i, name := range names {
		all[i] = -1
		if info, err := os.Stat(name); err == nil {
			all[i] = info.Size()
		}
	}
	return all
}

// summaryNow analyses the current content of files and returns the summary, or
// nil if no file is readable.
func (o *analyseOptions) summaryNow(names []string) ([]byte, error) {
	o.summary = true
	options, err := o.options()
	if err != nil {
		return nil, err
	}
	result, err := mptrace.Analyse(names, options)
	if err != nil {
		return nil, &exitError{exitPartial, err}
	}
	if mptrace.Unreadable(result.Files) {
		return nil, nil
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "\n=== %s\n", time.Now().Format(time.RFC3339))
	if err := o.print(result, &options, &text); err != nil {
		return nil, &exitError{exitPartial, err}
	}
	return text.Bytes(), nil
}
