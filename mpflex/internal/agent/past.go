package agent

import (
	"net/netip"

	"mplab/internal/netx"
	"mplab/mpflex/config"
	"mplab/mpflex/internal/forward/udprelay"
)

// past lets datagrams past the proxy, as the phone's own routes have it: what
// the proxy does for those of a session, the agent does here itself.
type past struct{ relay *udprelay.Relay }

// newPast returns the way past the proxy of these associations.
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

// send sends a datagram, and says whether it did. Answers come back.
func (p past) send(one *association, to netip.AddrPort, datagram []byte) bool {
	return p.relay.Send(udprelay.Client{}, one.id, to, 0, datagram) == nil
}

// end ends what there is of an association.
func (p past) end(one *association) { p.relay.CloseAssociation(udprelay.Client{}, one.id) }
