// Package loopback joins the two halves of a connection that a transparent
// redirect (iptables or nftables REDIRECT, redsocks) splits in a capture of the
// loopback interface. The application's packets go to the redirect's address,
// and the answers come from the server's address (baerts2015 §4.4). If the
// capture point is before the address translation, it is the reverse.
package loopback
