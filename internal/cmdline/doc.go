// Package cmdline has what the command lines of the programs share: exit codes, the
// flag --config and JSON on standard output. The commands themselves belong to each
// program.
package cmdline
