// Package rounds runs the benchmark. In every round, the methods take turns on the same emulated links with the same
// congestion control. Methods, workloads, networks and the report are in separate packages.
package rounds
