// Package udpjitter measures the loss, reordering and delay of a regular flow of
// datagrams in each direction (nikravesh2016 §3.3: 100 bytes every 10 ms). A client
// sends probes, directly or through a SOCKS5 server. An echo server answers each of
// them.
//
// The link probe of linkem, which measures a link without mpflex, is another protocol.
package udpjitter
