package policy

import (
	"fmt"
	"net/netip"
	"time"
)

// Protocol is the transport protocol of a flow.
type Protocol uint8

// The protocols that rules know.
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

// ParseProtocol reads "tcp" or "udp".
func ParseProtocol(text string) (Protocol, error) {
	switch text {
	case "tcp":
		return TCP, nil
	case "udp":
		return UDP, nil
	}
	return 0, fmt.Errorf("unknown protocol %s. Allowed: tcp, udp", show(text))
}

// Flow is what is known of an application's connection or UDP association. A
// condition on something that is not known does not hold.
type Flow struct {
	UID      int64          // -1 when unknown
	Packages []string       // Android packages of the uid; nil when unknown
	Process  string         // as the kernel names it, at most 15 bytes; "" when unknown
	Domain   string         // as names.Normalize returns it; "" when unknown
	Dst      netip.AddrPort // the zero address when unknown, port 0 when unknown
	Protocol Protocol       // 0 when unknown
}

// Reading is a measured value, or that there is none: the zero Reading is
// unknown.
type Reading struct {
	Value float64
	Known bool
}

// Known returns the reading of a value.
func Known(value float64) Reading { return Reading{value, true} }

// Conditions are the state of the phone that rules may ask for.
type Conditions struct {
	Time           time.Time // its location is the phone's own time zone
	Battery        Reading   // percent
	PlanLeft       Reading   // bytes of the data plan until its next reset
	PlanLimit      Reading   // bytes of the whole data plan
	WiFiThroughput Reading   // bit/s
}
