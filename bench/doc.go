// Package bench groups the benchmarks of linkem, mpflex and mptrace, each with the
// programs that it compares with. Tests of correctness stay beside the code that they
// test; no program imports from here.
package bench
