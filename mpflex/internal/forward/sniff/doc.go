// Package sniff finds the host name in the first bytes that an application sends: the
// server name of TLS, or the host of HTTP/1.x. Nothing is decrypted and nothing is
// kept. Reading these bytes from the socket is the caller's concern.
package sniff
