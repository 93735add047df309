// Package session carries streams and datagrams between an agent and a proxy over
// several paths at once. Each interface has one persistent TCP connection
// (nikravesh2016 §4: the multiplexed connections of MPFlex).
//
// A [Session] cuts the bytes of its streams into messages only when a path has room for
// them (late binding). Each path has a writing goroutine: it takes the messages that a
// scheduler assigns to the path (fill.go), then waits until the kernel has sent most of
// them. Received bytes are put in order for each stream separately (receive.go).
// Messages that are late on one path are copied to another (copy.go). Messages of a
// path that ended are sent again over the remaining paths (lost.go). mpflex/session.md
// defines the frames of a path, mpflex/spec.md how a connection becomes one.
//
// Opening connections belongs to uplink and downlink, choosing a path to sched.
package session
