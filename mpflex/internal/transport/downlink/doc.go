// Package downlink is the proxy's side of sessions: it turns connections into paths,
// and hands the streams that agents open to their handler. Destinations and limits of
// clients belong to proxy.
package downlink
