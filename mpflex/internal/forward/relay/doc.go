// Package relay moves bytes between two connections the way the network would
// have: an end of stream stays a half-close, a reset stays a reset.
//
// Opening either connection, and logging it, belongs to the caller.
package relay
