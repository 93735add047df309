// Package secretfile reads files that only their owner can access: secrets,
// tokens and private keys. No error contains their content. The callers decide
// purpose and required size of a secret.
package secretfile
