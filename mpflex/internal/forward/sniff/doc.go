// Package sniff finds the host name in the first bytes that an application sends: the
// server name of TLS, or the host of HTTP/1.x. It decrypts nothing and keeps nothing.
// Reading these bytes from the socket belongs to the caller.
package sniff
