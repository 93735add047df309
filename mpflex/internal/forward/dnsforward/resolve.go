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

// ErrNoAddress: the server knows no address of the name, or did not answer.
var ErrNoAddress = errors.New("no address is known of the name")

// maxHosts is how many names are remembered with their addresses.
const maxHosts = 4096

// Resolve returns an address of a host name, of IPv4 if there is one, and asks
// for it again when its time to live is over. Run must be running. The error is
// ErrNoAddress, or the cause of the context's end.
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
	// Both at once: an IPv6 address costs no further round trip.
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

// query begins a lookup of the program's own. There is always an answer, at
// the latest that of an error after the time of a query.
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

// maxUDP is the size of the largest answer that is not cut.
const maxUDP = 65535
