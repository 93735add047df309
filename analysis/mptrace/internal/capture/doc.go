// Package capture writes the packets of a network interface to a pcapng file,
// by default without payload: a filter in the kernel cuts each packet after its
// last header.
package capture
