// Package mpflex holds the agent on the phone and the proxy on the server. They carry
// connections over one path or several. spec.md and session.md define their protocol.
// Other programs may import wire, config, connlog, status, policy and cli. All other
// packages are in internal.
package mpflex
