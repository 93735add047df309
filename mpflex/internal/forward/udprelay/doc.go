// Package udprelay is what the proxy does with the UDP of its clients: it sends
// their datagrams to the destinations that are allowed and brings the answers
// back. How datagrams get from the client to the proxy is not its concern.
//
// Each association has one socket, and so one address towards all its
// destinations (RFC 4787 REQ-1). Only what comes from an address and port that
// the association has sent to is brought back (REQ-8, the strictest kind), so
// that nobody reaches a client unasked.
package udprelay
