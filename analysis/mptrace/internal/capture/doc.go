// Package capture writes the packets of a network interface to a pcapng file,
// by default without their payload: a filter in the kernel cuts each packet
// behind its last header.
package capture
