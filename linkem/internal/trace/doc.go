// Package trace reads, writes and makes packet-delivery traces in the format of Mahimahi (Netravali and others, USENIX
// ATC 2015): a line is a whole number of milliseconds since the beginning, and an opportunity to deliver one packet of
// full size. Lines do not decrease, several may be the same. The last one is the length of the trace, which is repeated
// for ever.
package trace
