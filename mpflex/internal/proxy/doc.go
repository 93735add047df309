// Package proxy is the program on the server. It accepts carrying connections of agents
// that have a known secret, and connects them to the requested destinations. It
// connects the packages of forward and transport. Their mechanisms belong to those
// packages.
package proxy
