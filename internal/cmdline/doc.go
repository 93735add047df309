// Package cmdline has the common parts of the programs' command lines: exit
// codes, the flag --config and JSON on standard output. Each program defines
// its commands.
package cmdline
