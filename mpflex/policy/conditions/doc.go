// Package conditions reads the state of the phone that policy rules ask for: time,
// battery, data plan and throughput of WiFi. Which rule matches is decided by policy.
package conditions
