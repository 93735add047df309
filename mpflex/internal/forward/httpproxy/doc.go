// Package httpproxy is an HTTP proxy (RFC 9110 §3.7, RFC 9112 §3.2): the way to
// the agent for applications that take the proxy in Android's settings. It
// serves tunnels (CONNECT) and requests for http resources, and leaves to its
// user how bytes are carried.
package httpproxy
