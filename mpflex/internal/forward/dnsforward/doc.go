// Package dnsforward answers DNS over UDP by asking a server over TCP
// (RFC 7766) on one persistent carrying connection.
//
// Which names are remembered, and for what, is decided by the agent.
package dnsforward
