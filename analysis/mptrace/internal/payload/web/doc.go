// Package web finds the web objects of a connection: HTTP/1.1 (RFC 9112) and
// HTTP/2 (RFC 9113) requests with their responses, times and subflows.
package web
