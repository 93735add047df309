// Package upload sends the recorded batches to the collector when the
// conditions are met: by default on WiFi and while charging. Batches that could
// not be sent wait. A batch that is sent twice is stored once, because its ID
// contains a hash of its content.
//
// Package store reads and removes the files.
package upload
