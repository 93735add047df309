// Package upload sends what a phone recorded to the collector, when it may: by
// default on WiFi and while the phone is charged. Batches that could not be sent
// wait; one that was sent twice is stored once, because its id names its content.
//
// Reading and removing files belongs to store.
package upload
