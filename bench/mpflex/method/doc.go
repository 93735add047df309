// Package method holds the ways from the phone to the origin that the benchmark
// compares. What is transferred belongs to workload.
package method
