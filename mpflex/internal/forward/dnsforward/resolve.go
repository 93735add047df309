package dnsforward

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// ErrNoAddress reports that the server has no address for the name, or did not answer.
var ErrNoAddress = errors.New("no address is known of the name")

// maxHosts bounds the names that are remembered with their addresses.
const maxHosts = 4096

// Resolve returns an address of a host name, preferably IPv4. It caches the address for
// its time to live. Run must be running. The error is ErrNoAddress, or the cause of the
// context's end.
func (f *Forwarder) Resolve(ctx context.Context, name string) (netip.Addr, error) {
	if known, ok := f.hosts.Lookup(name, time.Now()); ok {
		return known, nil
	}
	if !strings.HasSuffix(name, ".") {
		name += "."
	}
	asked, err := dnsmessage.NewName(name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%w: %s: %w", ErrNoAddress, name, err)
	}
	// Query both types at once: an IPv6 address then costs no further round trip.
	var answers [2]<-chan []byte
	for i, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		if answers[i], err = f.query(asked, kind); err != nil {
			return netip.Addr{}, fmt.Errorf("%w: %s: %w", ErrNoAddress, name, err)
		}
	}
	for _, answer := range answers {
		select {
		case message := <-answer:
			if found, ok := f.hosts.Learn(message, time.Now()); ok {
				return found, nil
			}
		case <-ctx.Done():
			return netip.Addr{}, context.Cause(ctx)
		}
	}
	return netip.Addr{}, fmt.Errorf("%w: %s", ErrNoAddress, name)
}

// query starts a lookup for Resolve. The channel always gets an answer: SERVFAIL after
// the query timeout at the latest.
func (f *Forwarder) query(name dnsmessage.Name, kind dnsmessage.Type) (<-chan []byte, error) {
	message := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: uint16(rand.Uint32()), RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: kind, Class: dnsmessage.ClassINET}},
	}
	var root dnsmessage.ResourceHeader
	if err := root.SetEDNS0(maxUDP, dnsmessage.RCodeSuccess, false); err != nil {
		return nil, err
	}
	message.Additionals = []dnsmessage.Resource{{Header: root, Body: &dnsmessage.OPTResource{}}}
	query, err := message.Pack()
	if err != nil {
		return nil, err
	}
	answer := make(chan []byte, 1)
	f.receive(f.running, query, func(message []byte) { answer <- message })
	return answer, nil
}

// maxUDP is the largest answer that is not truncated, in bytes.
const maxUDP = 65535
