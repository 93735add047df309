// Package capfile reads packet captures: pcap and pcapng, in microseconds and
// nanoseconds, plain or compressed by gzip or zstd, from a file or a stream.
//
// Reading is sequential and in batches: [File.Read] fills a [Batch] with the
// records of one piece of the file, and they point into that batch's own
// buffer. Files are read and not mapped, since a mapped file that shrinks
// kills its reader.
package capfile
