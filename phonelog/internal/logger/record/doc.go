// Package record has the records of the on-phone logger, one JSON object a line, and
// decides what is a change worth a record. The meaning of each field is in
// docs/schema/phone-log.schema.json; a test compares the two. Nothing is read from the
// phone or written to files here.
package record
