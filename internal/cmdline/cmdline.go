package cmdline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	Failed   = 1 // a check failed
	BadInput = 2 // bad arguments or configuration
	NotReady = 3 // the machine lacks something that the configuration requires
)

// Error is an error with its exit code. If Err is nil, the command has already
// printed the problem.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Exit returns an error with an exit code; err may be nil.
func Exit(code int, err error) error { return &Error{code, err} }

// Root returns the root command of a program.
func Root(name, version, short string, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		Version:       version,
		Short:         short,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(commands...)
	return root
}

// Execute runs a command line until it ends or ctx ends, prints its error and
// returns the exit code. An error without a code is an error in the arguments.
func Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := BadInput
	var exit *Error
	if errors.As(err, &exit) {
		code, err = exit.Code, exit.Err
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
	}
	return code
}

// Main runs a program with the arguments of this process until SIGTERM or SIGINT.
// It does not return.
func Main(execute func(ctx context.Context, args []string) int) {
	// A closed standard output must not end the program.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := execute(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// ConfigFlag adds the required flag --config to a command.
func ConfigFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", "", "the configuration `FILE` (JSON)")
	_ = cmd.MarkFlagRequired("config") // fails only for a flag that does not exist
}

// PrintJSON writes a value as one line.
func PrintJSON(w io.Writer, value any) {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // no one is left to report to
}
