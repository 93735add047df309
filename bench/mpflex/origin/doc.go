// Package origin is the server that the benchmark downloads from and uploads to, and its client. A connection carries
// one request:
//
//	request  operation 1 byte ('G' get, 'P' put) | size 8 | seed 8, big endian
//	get      size bytes follow from the server
//	put      size bytes follow from the client; the server answers with a request's 17 bytes: 'K' when all bytes were
//	         right, 'E' when not, with the size that was right and the seed
//
// The client closes first: at its last byte the connection is still whole, and can be looked at.
//
// The bytes are a fixed random block, repeated, from the place that the seed says, so both sides know them and every
// byte is compared.
package origin
