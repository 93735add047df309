// Package status has what agent and proxy report while they run: on a control socket
// (package control) and in the log. Records of what has ended belong to connlog; the
// counters belong to the packages that count.
package status
