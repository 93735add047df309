// Package record has the records of a benchmark run, one JSON object a line: a Run
// first, then the events in the order in which they happen. Every line has an "event".
// Statistics of them belong to report.
package record
