// Package filter selects connections by an expression, such as
// "address 10.0.0.0/8 and port 443". Addresses, ports and times are decided for
// each packet; numbers and tokens of connections need a first pass over the
// captures, which finds the flows of these connections.
package filter
