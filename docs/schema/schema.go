// Package schema holds the JSON Schemas of this folder that Go programs check
// by.
package schema

import _ "embed" // for what follows

// PhoneLog is the schema of a record of the on-phone logger.
//
//go:embed phone-log.schema.json
var PhoneLog []byte
