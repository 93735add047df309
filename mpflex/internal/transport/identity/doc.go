// Package identity makes a TCP connection between an agent and its proxy
// private: TLS 1.3 (RFC 8446) in which both sides prove that they know the same
// secret. From the secret each role has an Ed25519 key; each side takes the
// peer's key and no other. There are no names, no authorities and no dates. See
// mpflex/spec.md.
//
// The proxy may know several clients, each with a secret of its own. An agent
// says in its ClientHello, sealed, which secret it holds, so the proxy answers
// with the key of that secret, and whoever holds none gets not a byte.
//
// Sessions are never resumed: with TLS over TCP it would save no round trip, and
// each connection proves the identity of both sides anew.
//
// Reading the files of secrets belongs to secretfile and config.
package identity
