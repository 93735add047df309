// Package tables defines the rows of all tables and writes them as Parquet,
// JSON and text.
//
// The struct tags of a row are its documentation: json is the name of the
// column, unit its unit (empty for a name, a number without unit, or a boolean)
// and doc its meaning. The schema that `mptrace schema` prints, the Parquet
// files and the tables of docs/trace-tables.md are generated from these tags.
package tables
