// Package sched decides which path of a session carries a message.
//
// A scheduler is one small file that registers itself under the name that
// configurations use. It is asked for one message at a time, when there is a
// path with room for it: what it does not place now stays in user space and is
// offered again when something has changed (late binding).
//
// Copies of late messages are made by session (copy.go), whatever the scheduler.
package sched
