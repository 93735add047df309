// Package source turns captures into one sequence of TCP segments: it reads,
// decodes and merges files by time, numbers their interfaces, and counts what
// could not be used. It passes on answers of DNS over UDP, too.
//
// [Source.Next] fills one [Block] after the other. Several blocks may be in
// use at once, so that decoding can go on beside what is done with the packets.
package source
