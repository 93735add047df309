// Package packet decodes captured frames down to TCP and its options.
//
// Decoding works on byte slices and never allocates: the caller keeps an array
// of [Packet] and decodes frames into it. Lengths come from the IP header, not
// from the capture, so a frame that was cut after its last header still has its
// full payload length. Options that every segment of a bulk transfer has
// (timestamps, DSS) are decoded immediately. Rare options are only recorded in
// Has, and decoded from Options on request (options.go).
package packet
