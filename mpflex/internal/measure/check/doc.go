// Package check tests that carrying connections work as configured. It opens one as the
// agent would, or a session with its paths, and reports its properties. Measuring
// throughput belongs to the benchmarks.
package check
