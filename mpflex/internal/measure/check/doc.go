// Package check proves that carrying connections work as configured: it opens one as
// the agent would, or a session with its paths, and reports what it consists of. It
// measures no throughput; that belongs to the benchmarks.
package check
