// Package cli is the command line of phonelog: it parses arguments, starts logger or
// collector, and prints results. What is recorded and what is taken is decided in
// their packages.
package cli
