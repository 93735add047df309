// Package rounds runs the benchmark: the methods take turns in every round, on the
// same emulated links and with the same congestion control. Methods, workloads,
// networks and the report have packages of their own.
package rounds
