// Package cli is the command line of mpflex.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailed   = 1 // a check did not succeed
	exitBadInput = 2 // bad arguments or configuration
	exitNotReady = 3 // the machine does not offer what the configuration asks for
)

// exitError is an error with the exit code that it calls for. With a nil
// error, what is to be said was said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// Version is what --version prints.
var Version = "unknown"

// Execute runs a command line until it ends or ctx does, and returns the exit
// code.
func Execute(ctx context.Context, args []string) int {
	root := command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitBadInput
	var exit *exitError
	if errors.As(err, &exit) {
		code, err = exit.code, exit.err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mpflex:", err)
	}
	return code
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "mpflex",
		Version:       Version,
		Short:         "Carry a phone's connections to a proxy, over one path or several",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(agentCommand(), proxyCommand(), checkCommand(), statusCommand(), policyCommand(), udpEchoCommand(), udpJitterCommand(),
		loggerCommand(), collectorCommand())
	return root
}
