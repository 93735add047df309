// Package agent is the part on the phone: it takes the connections and lookups of
// applications and carries them to the proxy. It puts the packages of forward and
// transport together; how these work is not decided here.
package agent
