// Package linkem has no code: it is the map of the link emulator of the virtual lab and of its link probe.
//
// The emulator relays Ethernet frames between pairs of interfaces. Each link has two directions, and a frame passes these
// stages in each of them:
//
//	arrival → loss, duplication → queue → serialisation by rate or trace → delay, jitter → departure
//
// Package model has these stages, internal/port the interfaces, and internal/emulator the thread of each link that joins
// them. internal/config reads what is asked for, internal/trace and internal/record read and make packet-delivery traces.
// Package probe is the link probe, and cli the commands of cmd/linkem. docs/linkem.md has the manual.
//
// Units, unless a name says otherwise: times are int64 nanoseconds on the monotonic clock; bytes are IP bytes, that is
// the Ethernet frame without its 14-byte header; 1 kbit/s is 1000 bit/s.
package linkem
