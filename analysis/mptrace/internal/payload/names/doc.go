// Package names remembers which names the answers of the domain name system
// gave to addresses.
package names
