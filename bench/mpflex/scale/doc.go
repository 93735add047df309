// Package scale measures the memory that agent and proxy need for many connections: silent connections, and connections
// whose readers have stopped, so that all data in flight waits in the programs. Package rounds measures speed.
package scale
