// Package spool writes many files concurrently with few open descriptors. Data
// waits in memory. When one file or all together exceed a limit, the data is
// appended to its file, which is open only for that write.
package spool
