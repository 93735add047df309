// Package conditions reads the phone's state for policy rules: time, battery, data plan
// and throughput of WiFi. Matching rules belongs to policy.
package conditions
