// Package sched decides which path of a session carries a message.
//
// A scheduler is one small file that registers itself under the name that
// configurations use. It is called for one message at a time, when a path has room. A
// message that it does not place stays in user space and is offered again when a path's
// state has changed (late binding).
//
// Copies of late messages are made by session (copy.go), with any scheduler.
package sched
