// Package interval keeps sets of sequence numbers as merged intervals. It knows
// nothing of TCP: callers turn sequence numbers into 64 bits first.
package interval
