// Package capfile reads packet captures: pcap and pcapng, with microseconds or
// nanoseconds, plain or compressed by gzip or zstd, from a file or a stream.
//
// Reading is sequential and in batches: [File.Read] fills a [Batch] with the
// records of one piece of the file. The records point into the buffer of that
// batch. Files are read, not mapped, because truncating a mapped file kills the
// process that reads it.
package capfile
