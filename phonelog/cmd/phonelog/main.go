// Command phonelog records the events of a phone's networks: `phonelog logger`
// runs on the phone; `phonelog collector` runs on the server and receives
// uploads.
package main

import (
	"mplab/internal/cmdline"
	"mplab/phonelog/internal/cli"
)

// version is set by the build.
var version = "unknown"

func main() {
	cli.Version = version
	cmdline.Main(cli.Execute)
}
