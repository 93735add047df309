// Package udpjitter measures what datagrams of a regular flow suffer: loss,
// reordering and delay of either direction (nikravesh2016 §3.3: 100 bytes every
// 10 ms). A client sends probes, plainly or through a SOCKS5 server, and an echo
// server answers each.
//
// The link probe of linkem, which measures a link without mpflex, is another protocol.
package udpjitter
