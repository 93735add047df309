// Package jsonlog appends records to a log file, one JSON object per line, and
// limits how many records strangers can cause. Each program defines its
// records.
package jsonlog
