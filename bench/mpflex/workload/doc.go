// Package workload defines the transfers: their notation, physical limits, time limits and execution. Package method
// implements the connections.
package workload
