// Package workload defines what is transferred: its notation, physical limit and time
// limit, and how it is run. The way that it takes belongs to method.
package workload
