// Package origin is the server for the benchmark's downloads and uploads, and its client. A connection carries one
// request:
//
//	request  operation 1 byte ('G' get, 'P' put) | size 8 | seed 8, big endian
//	get      size bytes follow from the server
//	put      size bytes follow from the client; the server answers with a request's 17 bytes: 'K' when all bytes were
//	         right, 'E' when not, with the size that was right and the seed
//
// The client closes first: at its last byte the connection is still open and can be inspected.
//
// The bytes are a fixed random block, repeated, starting at the offset given by the seed. Both sides know them, so
// every byte is verified.
package origin
