// Package parquet writes flat tables as Parquet files, one row group after the
// other. It has only what tables of statistics need, and is fast at that:
// columns of integers, floats, booleans and strings with or without nulls,
// columns that are mostly one value, and groups of many columns and few rows.
//
// The format is that of https://parquet.apache.org/docs/file-format/ with
// pages of version 1, which all readers know.
package parquet
