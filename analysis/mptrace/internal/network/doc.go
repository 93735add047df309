// Package network says to which network of the phone an interface belongs, such
// as wifi or cellular: by rules of the user, or by the name of the interface.
package network
