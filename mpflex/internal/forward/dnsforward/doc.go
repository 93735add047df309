// Package dnsforward answers DNS queries over UDP. It forwards them to a server over
// TCP (RFC 7766) on one persistent carrying connection.
//
// The agent decides which names are remembered and how they are used.
package dnsforward
