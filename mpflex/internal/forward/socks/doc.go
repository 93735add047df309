// Package socks is a SOCKS5 server (RFC 1928; user and password: RFC 1929) for
// applications whose connections cannot be redirected. It serves CONNECT and UDP
// ASSOCIATE. The caller decides how bytes and datagrams are carried.
package socks
