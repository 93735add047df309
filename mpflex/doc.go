// Package mpflex holds the agent on the phone and the proxy on the server, which carry
// connections over one path or several; spec.md and session.md are what they say to
// each other. Other programs may import wire, config, connlog, status, policy and cli.
// Everything else is in internal.
package mpflex
