// Package lines checks batches of records, line by line, against
// docs/schema/phone-log.schema.json. It knows neither the sender of a batch nor
// its storage.
package lines
