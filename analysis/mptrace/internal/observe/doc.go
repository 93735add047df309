// Package observe has what observers of connections share: a state for each
// connection that they look at, and the data that waits for an acknowledgement.
// Each form of output is a package of its own below.
package observe
