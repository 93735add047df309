// Package role lets one binary play all programs of the benchmark, each in a process
// of its own: it runs itself again with a variable that names the part. When a part
// starts and ends is decided by its callers.
package role
