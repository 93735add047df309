// Package collector receives the records of phones: batches of JSON lines over
// HTTPS, with one token per device. An acknowledged batch is on the disk. The
// interface is documented in docs/collector.yaml.
//
// Package lines checks the lines, package store keeps them.
package collector
