// Package system asks the kernel and the Go runtime for what emulator and probe both need: punctual threads, large socket
// buffers, interfaces that are up.
package system
