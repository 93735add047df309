// Package uplink keeps an agent's session with its proxy: a path for each
// interface, set up again whenever it has ended, and another session when the
// proxy does not know this one any more.
//
// A path that is bound to an interface ends at once when that goes down or loses
// its address, is not tried while it cannot be used, and is set up again at once
// when it can; all else is found out by time.
//
// What streams carry is the agent's concern.
package uplink
