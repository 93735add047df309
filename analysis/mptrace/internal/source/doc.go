// Package source turns captures into one sequence of TCP segments. It reads,
// decodes and merges files by time, numbers their interfaces, and counts
// unusable frames. It also passes on the answers of DNS over UDP.
//
// [Source.Next] fills one [Block] after the other. Several blocks can be in use
// at once, so that decoding and processing run concurrently.
package source
