// Package ends compares the captures of the two ends of one cell, phone and
// proxy, packet by packet. It measures the loss on each path, the one-way delay
// of each packet, how long data waited at the receiver for earlier data, and
// which copy of reinjected data arrived first.
//
// It reads the captures three times. In the first pass both ends choose the
// same sample of packets ([sketch]), which matches the flows, also behind NAT,
// and gives a rough clock. The second pass matches all packets to estimate the
// clock ([Clock]), and the third pass measures with that clock. Both captures
// advance together. Transmissions in flight are bounded by time and number, so
// memory does not grow with the captures.
package ends
