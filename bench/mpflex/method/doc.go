// Package method implements the connection methods from the phone to the origin that the benchmark compares. Package
// workload defines the transfers.
package method
