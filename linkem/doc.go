// Package linkem is the link emulator of the virtual lab and its link probe.
//
// The emulator relays Ethernet frames between pairs of interfaces through AF_PACKET sockets. Each link has two
// directions, and a frame passes these stages in each of them:
//
//	arrival → loss, duplication → queue → serialisation by rate or trace → delay, jitter → departure
//
// The model ([direction]) is pure: it is told the time and holds no socket. One thread per link ([link]) feeds it from
// the receive rings, sleeps until the next departure and sends. docs/linkem.md has the manual.
//
// Units, unless a name says otherwise: times are int64 nanoseconds on the monotonic clock; bytes are IP bytes, that is
// the Ethernet frame without its 14-byte header; 1 kbit/s is 1000 bit/s.
package linkem
