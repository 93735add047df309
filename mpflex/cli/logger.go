package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mplab/control"
	"mplab/mpflex/config"
	"mplab/mpflex/logger"
	"mplab/mpflex/logger/store"
	"mplab/mpflex/logger/upload"
)

// op is a request to a control socket.
type op struct {
	Op string `json:"op"`
}

func loggerCommand() *cobra.Command {
	var file string
	var limit, period time.Duration
	cmd := &cobra.Command{
		Use:   "logger --config FILE",
		Short: "Record what happens to a phone's networks, and upload it when that may be",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadLogger(file)
			if err != nil {
				return &exitError{exitBadInput, err}
			}
			if limit < 0 || period < 0 || period > 0 && period < 100*time.Millisecond {
				return &exitError{exitBadInput, errors.New("--for must be positive, --every at least 100ms")}
			}
			if period > 0 {
				for _, p := range []*float64{&c.Periods.WiFiS, &c.Periods.CellS, &c.Periods.LocationS} {
					*p = period.Seconds()
				}
			}
			return runLogger(cmd, c, limit)
		},
	}
	configFlag(cmd, &file)
	cmd.Flags().DurationVar(&limit, "for", 0, "end after this time, such as 2h (default: on SIGTERM)")
	cmd.Flags().DurationVar(&period, "every", 0, "read WiFi, cellular and location so often, whatever the configuration says: 1s for a walk")
	cmd.AddCommand(loggerStatusCommand(), loggerUploadCommand())
	return cmd
}

func runLogger(cmd *cobra.Command, c config.Logger, limit time.Duration) error {
	ctx := cmd.Context()
	l, err := logger.New(ctx, c, Version)
	if err != nil {
		return &exitError{exitNotReady, err}
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("--for %s is over", limit))
		defer cancel()
	}
	announce(cmd.OutOrStdout(), readyLine{Role: "logger"})
	if err := l.Run(ctx); err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

func loggerStatusCommand() *cobra.Command {
	var file, path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status --config FILE | --control PATH",
		Short: "Show how a logger is that runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (file == "") == (path == "") {
				return &exitError{exitBadInput, errors.New("give one of --config and --control")}
			}
			if file != "" {
				c, err := config.LoadLogger(file)
				if err != nil {
					return &exitError{exitBadInput, err}
				}
				if path = c.Control; path == "" {
					return &exitError{exitBadInput, fmt.Errorf("%s: control: missing; without it a logger that runs cannot be asked", file)}
				}
			}
			var status logger.Status
			if err := askOnce(cmd.Context(), path, "status", &status); err != nil {
				return err
			}
			if asJSON {
				printJSON(cmd.OutOrStdout(), status)
				return nil
			}
			return status.Write(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the configuration `FILE` of the logger (JSON)")
	cmd.Flags().StringVar(&path, "control", "", "the control socket of the logger, its configuration's `PATH`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

// askOnce asks a program over its control socket for one thing.
func askOnce(ctx context.Context, path, what string, answer any) error {
	client, err := control.Dial(ctx, path)
	switch {
	case errors.Is(err, control.ErrNotSocket):
		return &exitError{exitBadInput, err}
	case err != nil:
		return &exitError{exitNotReady, err}
	}
	defer client.Close() //nolint:errcheck // nothing is left to lose
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("no answer within %s", answerTimeout))
	defer cancel()
	if err := client.Ask(ctx, op{what}, answer); err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

// uploaded is what `mpflex logger upload` prints.
type uploaded struct {
	OK      bool   `json:"ok"`
	Asked   bool   `json:"asked,omitempty"` // the logger that runs does it
	Sent    uint64 `json:"sent"`
	Refused uint64 `json:"refused"`
	Waiting int    `json:"waiting"`
	Error   string `json:"error,omitempty"`
}

func loggerUploadCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "upload --config FILE",
		Short: "Upload what was recorded now, whatever the rules; a logger that runs is asked to",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadLogger(file)
			if err == nil && c.Upload == nil {
				err = fmt.Errorf("%s: upload: missing; give the collector", file)
			}
			if err != nil {
				return &exitError{exitBadInput, err}
			}
			return uploadNow(cmd, c)
		},
	}
	configFlag(cmd, &file)
	return cmd
}

func uploadNow(cmd *cobra.Command, c config.Logger) error {
	s, err := logger.OpenStore(c)
	switch {
	case errors.Is(err, store.ErrLocked) && c.Control != "":
		if err := askOnce(cmd.Context(), c.Control, "upload", &struct{}{}); err != nil {
			return err
		}
		printJSON(cmd.OutOrStdout(), uploaded{OK: true, Asked: true})
		return nil
	case err != nil:
		return &exitError{exitNotReady, err}
	}
	defer s.Close() //nolint:errcheck // nothing was written
	u, err := upload.New(c.Device, *c.Upload, s, func() upload.Conditions { return upload.Conditions{} })
	if err != nil {
		return &exitError{exitBadInput, err}
	}
	err = u.Send(cmd.Context(), true)
	status, left := u.Status(), s.Status()
	result := uploaded{OK: err == nil && left.Waiting == 0 && left.Refused == 0, Sent: status.Sent, Refused: status.Refused, Waiting: left.Waiting, Error: status.Error}
	printJSON(cmd.OutOrStdout(), result)
	if !result.OK {
		if err != nil {
			fmt.Fprintln(os.Stderr, "mpflex:", err)
		}
		return &exitError{exitFailed, nil}
	}
	return nil
}
