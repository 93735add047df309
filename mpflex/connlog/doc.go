// Package connlog has the records that agent and proxy log: of connections, paths,
// sessions, lookups and refusals. How a record gets into the file is the matter of
// package jsonlog; the status of a program that runs is that of package status.
package connlog
