// Package cli is the command line of phonelog: it parses arguments, starts
// logger or collector, and prints results. Their packages decide what is
// recorded and accepted.
package cli
