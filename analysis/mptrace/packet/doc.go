// Package packet decodes captured frames down to TCP and its options.
//
// Decoding works on byte slices and never allocates: a caller keeps an array
// of [Packet] and decodes frames into it. Lengths come from the IP header, not
// from the capture, so a frame that was cut after its last header still has
// its full payload length. What every segment of a bulk transfer carries
// (timestamps, DSS) is decoded at once; rare options are noted in Has and
// decoded from Options when somebody asks (options.go).
package packet
