package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mplab/internal/cmdline"
	"mplab/phonelog/internal/config"
	"mplab/phonelog/internal/logger"
	"mplab/phonelog/internal/logger/store"
	"mplab/phonelog/internal/logger/upload"
)

func loggerCommand() *cobra.Command {
	var file string
	var limit, period time.Duration
	cmd := &cobra.Command{
		Use:   "logger --config FILE",
		Short: "Record the networks of a phone, and upload the records when the rules allow it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadLogger(file)
			if err != nil {
				return cmdline.Exit(cmdline.BadInput, err)
			}
			if limit < 0 || period < 0 || period > 0 && period < 100*time.Millisecond {
				return cmdline.Exit(cmdline.BadInput, errors.New("--for must be positive, --every at least 100ms"))
			}
			if period > 0 {
				for _, p := range []*float64{&c.Periods.WiFiS, &c.Periods.CellS, &c.Periods.LocationS} {
					*p = period.Seconds()
				}
			}
			return runLogger(cmd, c, limit)
		},
	}
	cmdline.ConfigFlag(cmd, &file)
	cmd.Flags().DurationVar(&limit, "for", 0, "end after this time, such as 2h (default: on SIGTERM)")
	cmd.Flags().DurationVar(&period, "every", 0, "interval of WiFi, cellular and location, instead of the configuration's: 1s for a walk")
	cmd.AddCommand(loggerStatusCommand(), loggerUploadCommand())
	return cmd
}

func runLogger(cmd *cobra.Command, c config.Logger, limit time.Duration) error {
	ctx := cmd.Context()
	l, err := logger.New(ctx, c, Version)
	if err != nil {
		return cmdline.Exit(cmdline.NotReady, err)
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("--for %s is over", limit))
		defer cancel()
	}
	announce(cmd.OutOrStdout(), readyLine{Role: "logger"})
	if err := l.Run(ctx); err != nil {
		return cmdline.Exit(cmdline.Failed, err)
	}
	return nil
}

func loggerStatusCommand() *cobra.Command {
	var file, path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status --config FILE | --control PATH",
		Short: "Show the state of a running logger",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (file == "") == (path == "") {
				return cmdline.Exit(cmdline.BadInput, errors.New("give one of --config and --control"))
			}
			if file != "" {
				c, err := config.LoadLogger(file)
				if err != nil {
					return cmdline.Exit(cmdline.BadInput, err)
				}
				if path = c.Control; path == "" {
					return cmdline.Exit(cmdline.BadInput, fmt.Errorf("%s: control: missing; give the socket that answers while the logger runs", file))
				}
			}
			var status logger.Status
			if err := ask(cmd.Context(), path, "status", &status); err != nil {
				return err
			}
			if asJSON {
				cmdline.PrintJSON(cmd.OutOrStdout(), status)
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

// uploaded is what `phonelog logger upload` prints.
type uploaded struct {
	OK      bool   `json:"ok"`
	Asked   bool   `json:"asked,omitempty"` // a running logger does the upload
	Sent    uint64 `json:"sent"`
	Refused uint64 `json:"refused"`
	Waiting int    `json:"waiting"`
	Error   string `json:"error,omitempty"`
}

func loggerUploadCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "upload --config FILE",
		Short: "Upload all records now, regardless of the rules; a running logger does it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadLogger(file)
			if err == nil && c.Upload == nil {
				err = fmt.Errorf("%s: upload: missing; give the collector", file)
			}
			if err != nil {
				return cmdline.Exit(cmdline.BadInput, err)
			}
			return uploadNow(cmd, c)
		},
	}
	cmdline.ConfigFlag(cmd, &file)
	return cmd
}

func uploadNow(cmd *cobra.Command, c config.Logger) error {
	s, err := logger.OpenStore(c)
	switch {
	case errors.Is(err, store.ErrLocked) && c.Control != "":
		if err := ask(cmd.Context(), c.Control, "upload", &struct{}{}); err != nil {
			return err
		}
		cmdline.PrintJSON(cmd.OutOrStdout(), uploaded{OK: true, Asked: true})
		return nil
	case err != nil:
		return cmdline.Exit(cmdline.NotReady, err)
	}
	defer s.Close() //nolint:errcheck // nothing was written
	u, err := upload.New(c.Device, *c.Upload, s, func() upload.Conditions { return upload.Conditions{} })
	if err != nil {
		return cmdline.Exit(cmdline.BadInput, err)
	}
	err = u.Send(cmd.Context(), true)
	status, left := u.Status(), s.Status()
	result := uploaded{OK: err == nil && left.Waiting == 0 && left.Refused == 0, Sent: status.Sent, Refused: status.Refused, Waiting: left.Waiting, Error: status.Error}
	cmdline.PrintJSON(cmd.OutOrStdout(), result)
	if !result.OK {
		if err != nil {
			fmt.Fprintln(os.Stderr, "phonelog:", err)
		}
		return cmdline.Exit(cmdline.Failed, nil)
	}
	return nil
}
