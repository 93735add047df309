// Package transport groups the packages that carry a session between agent and proxy
// over several paths: identity authenticates and encrypts a connection, uplink and
// downlink keep the paths of the agent and the proxy, session sends bytes in the
// messages of frame, and sched chooses the path. Nothing here knows applications,
// destinations, rules or logs.
package transport
