package cli

import (
	"context"

	"github.com/spf13/cobra"

	"mplab/internal/cmdline"
)

// Version is the output of --version.
var Version = "unknown"

// Execute runs a command line until it ends or ctx ends. It returns the exit code.
func Execute(ctx context.Context, args []string) int { return cmdline.Execute(ctx, command(), args) }

func command() *cobra.Command {
	return cmdline.Root("mpflex", Version, "Carry a phone's connections to a proxy, over one path or several",
		agentCommand(), proxyCommand(), checkCommand(), statusCommand(), policyCommand(), udpEchoCommand(), udpJitterCommand())
}
