// Command mpflex carries a phone's connections to a proxy over one path or several.
// `mpflex agent` runs on the phone, `mpflex proxy` on the server. `mpflex check` tests
// the connection between them. `mpflex status` shows the state of either.
package main

import (
	"mplab/internal/cmdline"
	"mplab/mpflex/cli"
)

// version is set when the program is built.
var version = "unknown"

func main() {
	cli.Version = version
	cmdline.Main(cli.Execute)
}
