// Package record defines the records of the logger, one JSON object per line,
// and decides which changes are recorded. docs/schema/phone-log.schema.json
// documents each field; a test compares the two. The package neither reads the
// phone nor writes files.
package record
