// Package session carries streams and datagrams between an agent and a proxy
// over several paths at once: one persistent TCP connection for each interface
// (nikravesh2016 §4: the multiplexed connections of MPFlex).
//
// A [Session] cuts the bytes of its streams into messages when there is a path
// with room for them, not before (late binding): each path has a goroutine
// that takes what a scheduler gives it (fill.go), and waits until the kernel
// has sent most of it. What arrives is put in order for each stream on its own
// (receive.go). Messages that are late on one path are copied to another
// (copy.go), and those of a path that ended go again over what is left
// (lost.go). See mpflex/spec.md for what passes on a path.
//
// Opening connections belongs to uplink and downlink, choosing a path to sched.
package session
