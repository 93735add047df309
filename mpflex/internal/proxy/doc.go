// Package proxy is the part on the server: it takes carrying connections from agents
// that know the secret and connects them to the requested destinations. It puts the
// packages of forward and transport together; how these work is not decided here.
package proxy
