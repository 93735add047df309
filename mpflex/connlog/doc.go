// Package connlog has the records that agent and proxy log: connections, paths,
// sessions, lookups and refusals. How a record gets into the file belongs to jsonlog;
// what a running program reports belongs to status.
package connlog
