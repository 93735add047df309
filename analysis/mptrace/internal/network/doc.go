// Package network says to which network of the phone an interface belongs, wifi
// or cellular for example:
// by rules of the user for interfaces and addresses, or by the interface's name.
package network
