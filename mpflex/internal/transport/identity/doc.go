// Package identity authenticates and encrypts a TCP connection between an agent and its
// proxy. It uses TLS 1.3 (RFC 8446), in which both sides prove that they have the same
// secret. Each role derives an Ed25519 key from the secret. A side accepts only the key
// of its peer. There are no names, authorities or dates. See mpflex/spec.md.
//
// The proxy may have several clients, each with its own secret. The ClientHello of an
// agent identifies its secret in a form that only a holder of the secret can read. The
// proxy answers with the key of that secret. A peer without a secret gets no byte.
//
// Sessions are never resumed. With TLS over TCP this would save no round trip, and each
// connection must prove the identity of both sides.
//
// Reading the files of secrets belongs to secretfile and config.
package identity
