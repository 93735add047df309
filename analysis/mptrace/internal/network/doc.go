// Package network maps an interface to a network of the phone, such as wifi or
// cellular: by rules of the user, or by the name of the interface.
package network
