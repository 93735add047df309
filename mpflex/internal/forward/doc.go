// Package forward groups the packages through which the traffic of applications gets
// into the agent and out of the proxy: front ends (accept, socks, httpproxy,
// dnsforward), what is known of a connection (owner, sniff), and the ways on (carrier,
// relay, udprelay). What runs when, and with which configuration, is decided in agent
// and proxy.
package forward
