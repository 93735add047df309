// Package lines checks batches of records, line by line, against
// docs/schema/phone-log.schema.json. Who sends a batch, and where it goes, is not
// known here.
package lines
