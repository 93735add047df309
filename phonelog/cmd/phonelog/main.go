// Command phonelog records what happens to a phone's networks: `phonelog logger`
// runs on the phone, `phonelog collector` on the server takes what loggers upload.
package main

import (
	"mplab/internal/cmdline"
	"mplab/phonelog/internal/cli"
)

// version is set when the program is built.
var version = "unknown"

func main() {
	cli.Version = version
	cmdline.Main(cli.Execute)
}
