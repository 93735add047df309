// Package scale measures the memory that many connections cost agent and proxy: silent
// connections, and connections whose readers have stopped, so that all data in flight
// waits in the programs. Speed is measured by rounds.
package scale
