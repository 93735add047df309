// Package secretfile reads files that only their owner can use: secrets, tokens and
// private keys. No error shows their content. What a secret is for, and how many bytes
// it needs, is decided by callers.
package secretfile
