// Package names checks and normalises host names, and remembers for which name an
// address was given. Asking for a name belongs to dnsforward, finding one in traffic
// to sniff.
package names
