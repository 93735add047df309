// Package carrier opens the carrying connections, over which the agent sends an
// application's bytes. A carrying connection is a separate connection over plain TCP or
// kernel MPTCP, or a stream of the agent's session with the proxy.
//
// Moving the bytes belongs to relay, keeping the session to uplink.
package carrier
