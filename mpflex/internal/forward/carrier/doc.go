// Package carrier opens carrying connections: what the agent sends an
// application's bytes over. That is a connection of its own, over plain TCP or
// kernel MPTCP, or a stream of the agent's session with the proxy.
//
// Moving the bytes belongs to relay, keeping the session to uplink.
package carrier
