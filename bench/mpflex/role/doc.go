// Package role lets one binary run as any program of the benchmark, each in a separate process: it executes itself with
// an environment variable that selects the role. The callers start and stop the processes.
package role
