// Package payload reads what was captured of the payload of connections: the
// names of servers, where proxied connections really go, and web objects.
package payload
