// Package httpproxy is an HTTP proxy (RFC 9110 §3.7, RFC 9112 §3.2) for applications
// that use the proxy of Android's settings. It serves tunnels (CONNECT) and requests
// for http resources. The caller decides how bytes are carried.
package httpproxy
