// Package transport groups the packages that carry a session between agent and proxy
// over several paths: identity makes a connection private, uplink and downlink keep
// the paths of either side, session moves the bytes in the messages of frame, and
// sched chooses the path. Nothing here knows applications, destinations, rules or
// logs.
package transport
