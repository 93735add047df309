// Package spool writes many files side by side while few are open. What is
// written waits in memory; when one file or all together have too much of it,
// it is appended to the files, each of which is open for that moment alone.
package spool
