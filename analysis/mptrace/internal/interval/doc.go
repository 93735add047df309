// Package interval holds sets of sequence numbers as merged intervals. It does
// not depend on TCP: callers first extend sequence numbers to 64 bits.
package interval
