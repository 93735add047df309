// Package payload reads the captured payload of connections: server names, the
// destinations of proxied connections, and web objects.
package payload
