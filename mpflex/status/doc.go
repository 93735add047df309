// Package status defines the reports of a running agent or proxy, on a control socket
// (package control) and in the log. Records of ended connections belong to connlog,
// counters to the packages that count.
package status
