// Package netbox creates small private networks for tests and benchmarks of linkem: unnamed network namespaces that
// vanish with the process.
//
// It is independent of any program: tests and benchmarks start the programs that they measure.
package netbox
