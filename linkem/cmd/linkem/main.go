// Command linkem emulates network links between pairs of interfaces and probes links. See docs/linkem.md.
package main

import (
	"os"

	"mplab/linkem/cli"
)

// version is set when the program is built.
var version = "unknown"

func main() {
	cli.Version = version
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
