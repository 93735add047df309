package names

import (
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// namesPerAddress is the maximum number of successive names per address: the
// name of a host with many sites changes with every answer.
const namesPerAddress = 4

// DNS maps addresses to names. It keeps the newest addresses.
type DNS struct {
	limit     int
	addresses map[netip.Addr][]answer // answers in the order of time
	order     []netip.Addr            // ring buffer; the next to be evicted is at head
	head      int
}

type answer struct {
	timeNS int64
	name   string
}

// NewDNS returns a map for at most limit addresses.
func NewDNS(limit int) *DNS { return &DNS{limit: limit, addresses: map[netip.Addr][]answer{}} }

// Name returns the queried name of the last answer before a time that contained
// the address, or "".
func (d *DNS) Name(a netip.Addr, timeNS int64) string {
	all := d.addresses[a.Unmap()]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].timeNS <= timeNS {
			return all[i].name
		}
	}
	return ""
}

// Answer processes a message: the payload of a UDP datagram, or a message of
// DNS over TCP without its length. The message may be truncated. Answer returns
// false if it is not a DNS message.
func (d *DNS) Answer(message []byte, timeNS int64) bool {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil {
		return false
	}
	if !header.Response || header.RCode != dnsmessage.RCodeSuccess {
		return true
	}
	question, err := p.Question()
	if err != nil || p.SkipAllQuestions() != nil {
		return false
	}
	name := strings.ToLower(strings.TrimSuffix(question.Name.String(), "."))
	for {
		a, err := p.AnswerHeader()
		if err != nil {
			return err == dnsmessage.ErrSectionDone
		}
		switch {
		case a.Class == dnsmessage.ClassINET && a.Type == dnsmessage.TypeA:
			r, err := p.AResource()
			if err != nil {
				return false
			}
			d.add(netip.AddrFrom4(r.A), name, timeNS)
		case a.Class == dnsmessage.ClassINET && a.Type == dnsmessage.TypeAAAA:
			r, err := p.AAAAResource()
			if err != nil {
				return false
			}
			d.add(netip.AddrFrom16(r.AAAA).Unmap(), name, timeNS)
		default: // aliases: the name of the question is used anyway
			if p.SkipAnswer() != nil {
				return false
			}
		}
	}
}

func (d *DNS) add(a netip.Addr, name string, timeNS int64) {
	all, known := d.addresses[a]
	if last := len(all) - 1; last >= 0 && all[last].name == name {
		return
	}
	if !known {
		d.forget(a)
	}
	if len(all) == namesPerAddress {
		all = append(all[:0], all[1:]...)
	}
	d.addresses[a] = append(all, answer{timeNS, name})
}

// forget makes room for a new address.
func (d *DNS) forget(a netip.Addr) {
	if len(d.order) < d.limit {
		d.order = append(d.order, a)
		return
	}
	delete(d.addresses, d.order[d.head])
	d.order[d.head] = a
	d.head = (d.head + 1) % d.limit
}
