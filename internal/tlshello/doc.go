// Package tlshello reads the ClientHello of TLS. Its end may not have arrived
// yet, or may be missing in a capture.
package tlshello
