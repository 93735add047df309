// Package socks is a SOCKS5 server (RFC 1928, with user and password as in
// RFC 1929): the way to the agent for applications whose connections cannot be
// redirected. It serves CONNECT and UDP ASSOCIATE and leaves to its user how
// bytes and datagrams are carried.
package socks
