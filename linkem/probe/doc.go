// Package probe measures a link over UDP: round-trip time, rates in both directions and loss, with a separate server
// and wire format. It does not depend on the emulator and also measures real links.
package probe
