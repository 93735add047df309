// Package parquet writes flat tables as Parquet files, one row group after the
// other. It supports only what these tables need, and is fast at that: columns
// of integers, floats, booleans and strings with or without nulls, columns with
// mostly equal values, and row groups with many columns and few rows.
//
// The format is that of https://parquet.apache.org/docs/file-format/ with data
// pages of version 1, which every reader supports.
package parquet
