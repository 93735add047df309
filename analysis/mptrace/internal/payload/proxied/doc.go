// Package proxied finds the destinations of proxied connections: in the logs of
// agent and proxy, and in the first bytes that a client sends to its proxy.
package proxied
