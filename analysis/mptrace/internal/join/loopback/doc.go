// Package loopback joins the two halves into which a transparent redirect
// (iptables or nftables REDIRECT, redsocks) takes a connection in a capture of
// the loopback interface: what the application sends goes to the redirect's
// address, and what it gets comes from the server's (baerts2015 §4.4); or the
// reverse, where the capture is made before the addresses are replaced.
package loopback
