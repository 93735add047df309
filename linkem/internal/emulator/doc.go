// Package emulator runs links. One thread per link passes frames from the receive rings of its ports to the model,
// sleeps until the next departure and sends. The package also answers the control socket.
package emulator
