// Package names checks and normalises host names, and maps addresses to names.
// Resolving names belongs to dnsforward, finding names in traffic to sniff.
package names
