// Package trace reads, writes and makes packet-delivery traces in the format of Mahimahi (Netravali and others, USENIX
// ATC 2015). Each line is an opportunity to deliver one full-size packet: a whole number of milliseconds since the
// start. Lines must not decrease and may repeat. The last line is the length of the trace, which repeats forever.
package trace
