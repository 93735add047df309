// Package ends compares the captures of the two ends of one cell, phone and
// proxy, packet by packet: what was lost on each path, how long each packet
// took, how long data waited at the receiver for data before it, and which
// copy of reinjected data came first.
//
// The captures are read three times. First both ends choose the same sample of
// packets ([sketch]): it tells which flows are the same, behind NAT too, and
// roughly the clocks. Then all packets are matched to find the clock
// ([Clock]), and again to measure with it. Both captures advance together;
// what waits for its arrival is bounded by time and number, so memory does not
// grow with the captures.
package ends
