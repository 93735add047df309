// Package bench groups the benchmarks of linkem, mpflex and mptrace, each with
// the programs that it compares. Correctness tests stay next to the code that
// they test. No program imports from here.
package bench
