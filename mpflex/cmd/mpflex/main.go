// Command mpflex carries a phone's connections to a proxy over one path or
// several: `mpflex agent` runs on the phone, `mpflex proxy` on the server, and
// `mpflex check` proves that the one reaches the other; `mpflex status` shows how one is.
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
