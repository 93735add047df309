package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mplab/control"
	"mplab/internal/cmdline"
)

// Version is what --version prints.
var Version = "unknown"

// Execute runs a command line until it ends or ctx ends, and returns the exit
// code.
func Execute(ctx context.Context, args []string) int { return cmdline.Execute(ctx, command(), args) }

func command() *cobra.Command {
	return cmdline.Root("phonelog", Version, "Record the networks of a phone, and collect the records of phones",
		loggerCommand(), collectorCommand())
}

// readyLine is printed when a logger or collector is ready.
type readyLine struct {
	Event  string                    `json:"event"` // always "ready"
	Role   string                    `json:"role"`
	PID    int                       `json:"pid"`
	Listen map[string]netip.AddrPort `json:"listen"`
	Plain  bool                      `json:"plain,omitempty"` // records are readable on the network
}

func announce(w io.Writer, line readyLine) {
	line.Event, line.PID = "ready", os.Getpid()
	cmdline.PrintJSON(w, line)
}

// answerTimeout is the maximum time that a program may take to answer.
const answerTimeout = 10 * time.Second

// op is a request to a control socket.
type op struct {
	Op string `json:"op"`
}

// ask sends one request to a program over its control socket.
func ask(ctx context.Context, path, what string, answer any) error {
	client, err := control.Dial(ctx, path)
	switch {
	case errors.Is(err, control.ErrNotSocket):
		return cmdline.Exit(cmdline.BadInput, err)
	case err != nil:
		return cmdline.Exit(cmdline.NotReady, err)
	}
	defer client.Close() //nolint:errcheck // nothing is left to lose
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("no answer within %s", answerTimeout))
	defer cancel()
	if err := client.Ask(ctx, op{what}, answer); err != nil {
		return cmdline.Exit(cmdline.Failed, err)
	}
	return nil
}
