package agent

import (
	"net/netip"

	"mplab/internal/netx"
	"mplab/mpflex/config"
	"mplab/mpflex/internal/forward/udprelay"
)

// past sends datagrams to their destinations by the phone's routes, without the proxy.
// It uses the same relay as the proxy does for a session.
type past struct{ relay *udprelay.Relay }

// newPast returns the relay past the proxy for these associations.
func newPast(c config.Agent, s *associations) past {
	return past{udprelay.New(udprelay.Options{
		Permits: func(netip.AddrPort) bool { return true }, Socket: netx.Options{Mark: c.Mark},
		Deliver: func(_ udprelay.Client, id uint32, source netip.AddrPort, _ byte, datagram []byte) {
			if one := s.find(id); one != nil {
				one.deliver(source, datagram)
			}
		},
	})}
}

// send sends a datagram and reports success. Answers go to the client.
func (p past) send(one *association, to netip.AddrPort, datagram []byte) bool {
	return p.relay.Send(udprelay.Client{}, one.id, to, 0, datagram) == nil
}

// end ends the relay's association of the same number.
func (p past) end(one *association) { p.relay.CloseAssociation(udprelay.Client{}, one.id) }
