// Package uplink keeps an agent's session with its proxy. It keeps one path for each
// interface and sets it up again when it has ended. It starts a new session when the
// proxy no longer knows the old one.
//
// A path that is bound to an interface ends as soon as the interface goes down or loses
// its address. It is not tried while the interface cannot be used, and is set up again
// as soon as it can. All other failures are detected by timeouts, and tried again after
// a pause.
//
// The content of streams belongs to agent.
package uplink
