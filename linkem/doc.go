// Package linkem has no code. It describes the link emulator of the virtual lab and its link probe.
//
// The emulator relays Ethernet frames between pairs of interfaces. Each link has two directions, and a frame passes these
// stages in each of them:
//
//	arrival → loss, duplication → queue → serialisation by rate or trace → delay, jitter → departure
//
// Package model implements these stages, internal/port the interfaces, and internal/emulator the thread of each link
// that connects them. internal/config reads the configuration and requests; internal/trace and internal/record read and
// make packet-delivery traces. Package probe is the link probe, and cli has the commands of cmd/linkem. The manual is
// docs/linkem.md.
//
// Units, unless a name says otherwise: times are int64 nanoseconds on the monotonic clock; bytes are IP bytes, that is
// the Ethernet frame without its 14-byte header; 1 kbit/s is 1000 bit/s.
package linkem
