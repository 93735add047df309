// Package cli is the command line of mpflex: it parses arguments, starts agent, proxy
// or a measurement, and prints results. Decisions about traffic belong to the packages
// that it starts.
package cli
