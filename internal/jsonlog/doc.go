// Package jsonlog appends records to a log file, one JSON object a line, and bounds
// how many records strangers can cause. The records themselves belong to each program.
package jsonlog
