// Package netbox makes small private networks for tests and benchmarks of linkem: network namespaces without a name,
// which vanish with the process.
package netbox
