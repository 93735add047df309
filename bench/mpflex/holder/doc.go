// Package holder is an origin server for measurements with many connections: it is silent, sends without end, or does
// not read. Package origin serves downloads and uploads.
package holder
