// Package record defines the records of a benchmark run, one JSON object per line: first a Run, then the events in
// chronological order. Every line has an "event". Package report computes the statistics.
package record
