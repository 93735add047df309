// Package tlsread decrypts the records of a captured TLS connection with the
// secrets of a key log: TLS 1.3 (RFC 8446) and TLS 1.2 (RFC 5246) without
// renegotiation.
package tlsread
