// Package muxed is the strongest rival of MPFlex that can be built from existing parts: hashicorp/yamux over one
// persistent connection, MPTCP or plain TCP (optionally with TLS), between a client on the phone and a server on the
// proxy. As in mpflex, the client accepts redirected connections and the server connects them to their destinations.
// Unlike in mpflex, nothing is authenticated. The package uses no code of mpflex.
package muxed
