// Package port receives and sends whole Ethernet frames on an interface, through an AF_PACKET socket with a receive ring.
package port
