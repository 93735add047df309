// Package relay moves bytes between two connections and keeps their semantics: an end
// of stream becomes a half-close, a reset becomes a reset.
//
// Opening the connections and logging them belong to the caller.
package relay
