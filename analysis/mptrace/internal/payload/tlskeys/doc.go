// Package tlskeys reads the key logs that browsers and TLS libraries write
// when SSLKEYLOGFILE is set (RFC 9850).
package tlskeys
