// Package agent is the program on the phone. It accepts the connections and lookups of
// applications and carries them to the proxy. It connects the packages of forward and
// transport. Their mechanisms belong to those packages.
package agent
