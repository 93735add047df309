package policy

import (
	"fmt"
	"net/netip"
	"time"
)

// Protocol is the transport protocol of a flow.
type Protocol uint8

// The protocols that rules can name.
const (
	TCP Protocol = iota + 1
	UDP
)

func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	}
	return "unknown"
}

// ParseProtocol parses "tcp" or "udp".
func ParseProtocol(text string) (Protocol, error) {
	switch text {
	case "tcp":
		return TCP, nil
	case "udp":
		return UDP, nil
	}
	return 0, fmt.Errorf("unknown protocol %s. Allowed: tcp, udp", show(text))
}

// Flow holds the known properties of an application's connection or UDP association. A
// condition on an unknown property does not hold.
type Flow struct {
	UID      int64          // -1: unknown
	Packages []string       // Android packages of the uid; nil: unknown
	Process  string         // the kernel's name, at most 15 bytes; "": unknown
	Domain   string         // in the form of names.Normalize; "": unknown
	Dst      netip.AddrPort // zero address: unknown; port 0: unknown
	Protocol Protocol       // 0: unknown
}

// Reading is a measured value. The zero Reading is unknown.
type Reading struct {
	Value float64
	Known bool
}

// Known returns the reading of a value.
func Known(value float64) Reading { return Reading{value, true} }

// Conditions is the phone's state, for rules.
type Conditions struct {
	Time           time.Time // in the phone's time zone
	Battery        Reading   // percent
	PlanLeft       Reading   // remaining bytes of the data plan until its next reset
	PlanLimit      Reading   // bytes of the whole data plan
	WiFiThroughput Reading   // bit/s
}
