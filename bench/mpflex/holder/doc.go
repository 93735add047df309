// Package holder is an origin server for measurements of many connections: it is
// silent, sends without end, or does not read. Downloads and uploads are served by
// origin.
package holder
