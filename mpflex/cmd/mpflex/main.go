// Command mpflex carries a phone's connections to a proxy over one path or
// several: `mpflex agent` runs on the phone, `mpflex proxy` on the server, and
// `mpflex check` proves that the one reaches the other; `mpflex status` shows how one is.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"mplab/mpflex/cli"
)

// version is set when the program is built.
var version = "unknown"

func main() {
	cli.Version = version
	// A reader of standard output that goes away must not end the program.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if code := cli.Execute(ctx, os.Args[1:]); code != 0 {
		os.Exit(code)
	}
}
