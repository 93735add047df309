// Package system configures the kernel and the Go runtime for emulator and probe: punctual threads, large socket
// buffers, interfaces that are up.
package system
