// Package udprelay sends the datagrams of the proxy's clients to permitted destinations
// and returns the answers. How datagrams get from the client to the proxy belongs to
// others.
//
// Each association has one socket, and so one address for all its destinations (RFC
// 4787 REQ-1). It accepts datagrams only from an address and port to which it has sent
// (REQ-8, address and port-dependent filtering), so that a client gets no unsolicited
// datagram.
package udprelay
