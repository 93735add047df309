// Package emulator runs links: one thread per link feeds the model from the receive rings of its ports, sleeps until the
// next departure and sends. It also answers the control socket.
package emulator
