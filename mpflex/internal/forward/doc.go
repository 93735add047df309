// Package forward groups the packages through which applications' traffic enters the
// agent and leaves the proxy: listeners (accept, socks, httpproxy, dnsforward),
// properties of a connection (owner, sniff), and transmission (carrier, relay,
// udprelay). Packages agent and proxy decide when and with which configuration they
// run.
package forward
