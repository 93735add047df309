// Package connlog defines the log records of agent and proxy: connections, paths,
// sessions, lookups and refusals. Writing records to the file belongs to jsonlog. The
// state of a running program belongs to status.
package connlog
