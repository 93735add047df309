// Package collector takes what phones recorded: batches of JSON lines over
// HTTPS, each device with its token. What it acknowledged is on the disk. Its
// interface is docs/collector.yaml.
//
// Checking lines belongs to lines, keeping them to store.
package collector
