// Package port receives and sends complete Ethernet frames on an interface, through an AF_PACKET socket with a receive
// ring.
package port
