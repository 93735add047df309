// Package downlink is the proxy's side of sessions. It makes connections paths, and
// passes the streams that agents open to a handler. Destinations and limits of clients
// belong to proxy.
package downlink
