// Package netbox makes small private networks for tests and benchmarks of linkem: network namespaces without a name,
// which vanish with the process.
//
// Nothing of any program belongs here: tests and benchmarks start what they measure.
package netbox
