// Package tables holds the rows that a trace becomes, and writes them as
// Parquet, as JSON and as text.
//
// The struct tags of a row are its documentation: json is the column's name,
// unit its unit (none: a name, a number or a truth) and doc its meaning. The
// schema that `mptrace schema` prints, the Parquet files and the tables of
// docs/trace-tables.md are made from them.
package tables
