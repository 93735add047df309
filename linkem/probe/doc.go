// Package probe measures a link over UDP: round-trip time, rates in both directions and loss, with its own server and
// wire format. It knows nothing of the emulator and also measures links that are real.
package probe
