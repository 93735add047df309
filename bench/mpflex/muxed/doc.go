// Package muxed is the strongest rival of MPFlex that can be put together from
// existing parts: hashicorp/yamux over one persistent connection, MPTCP or plain TCP
// (on request with TLS), between a client on the phone and a server on the proxy. Like
// mpflex, the client takes redirected connections and the server connects them to
// their destinations; unlike mpflex, nothing is authenticated. Nothing of mpflex is
// used here.
package muxed
