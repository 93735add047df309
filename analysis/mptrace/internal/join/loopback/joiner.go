package loopback

import (
	"mplab/analysis/mptrace/packet"
)

// Options of a [Joiner]. Zero values stand for the defaults.
type Options struct {
	// Port is the redirect's port. Without it redirects are known by a
	// handshake whose two packets disagree about the server, one of them
	// naming a loopback address.
	Port uint16
	// Connections is how many redirected connections are remembered, and as
	// many handshakes that are not complete; default 16384.
	Connections int
	// HoldNS is how long a SYN may wait for its answer; default 3 s.
	HoldNS int64
}

// Joiner rewrites packets so that both halves of a redirected connection are
// between client and server. Connections of which one side shows both halves
// are left alone. It is not safe for concurrent use.
//
// The first SYN of a redirected connection does not say yet which server is
// meant. It is held until its answer comes, and follows right before it.
type Joiner struct {
	o       Options
	joined  *table            // connections whose halves were put together
	waiting *table            // handshakes, and halves without one
	learnt  map[endpoint]bool // redirects, without a given port
	guesses int               // halves without a handshake
	held    []*hold           // in the order of time
	ready   []packet.Packet
	// Joined counts connections whose halves were put together.
	Joined int
}

type endpoint struct {
	addr packet.Addr
	port uint16
}

// half is what is known of a client's port.
type half struct {
	client   endpoint
	to       endpoint // where the client sends; zero: not seen
	from     endpoint // where the client's answers come from; zero: not seen
	isn      uint32   // of the client's SYN, with syn
	syn      bool
	joined   bool
	whole    bool // both directions have the same other end: left alone
	redirect bool // joined: the client sends to the redirect (else the redirect answers)
	guessed  bool // no handshake was seen
	sent     numbers
	got      numbers
}

// numbers are those of the last segment of a direction.
type numbers struct {
	next, ack uint32
	acks, set bool
}

// New returns a joiner that has seen nothing.
func New(o Options) *Joiner {
	if o.Connections == 0 {
		o.Connections = 1 << 14
	}
	if o.HoldNS == 0 {
		o.HoldNS = 3e9
	}
	return &Joiner{o: o, joined: newTable(o.Connections), waiting: newTable(o.Connections), learnt: map[endpoint]bool{}}
}

// Rewrite takes the next packet and puts client and server in the place of the
// redirect. It returns false when the packet is held: it is not to be used
// now, and comes back from Ready. After each call the packets of Ready are to
// be taken before p.
func (j *Joiner) Rewrite(p *packet.Packet) bool {
	j.ready = j.ready[:0]
	if len(j.held) > 0 {
		j.expire(p.TimeNS)
	}
	switch {
	case p.Flags&(packet.SYN|packet.ACK) == packet.SYN:
		return j.syn(p)
	case p.Flags&packet.ACK != 0 && p.Flags&(packet.SYN|packet.RST) != 0:
		j.answer(p)
	}
	if j.concerns(p) {
		j.join(p)
	}
	return true
}

// Ready are the packets that were held and go before the one that was given
// to Rewrite last; valid until the next call.
func (j *Joiner) Ready() []packet.Packet { return j.ready }

// Flush returns the packets that are still held, at the end of the input.
func (j *Joiner) Flush() []packet.Packet {
	j.ready = j.ready[:0]
	for len(j.held) > 0 {
		j.release(0)
	}
	return j.ready
}

// concerns says whether a packet may belong to a redirect; it is quick, for
// all the others.
func (j *Joiner) concerns(p *packet.Packet) bool {
	return j.guesses > 0 || j.redirect(endpoint{p.Dst, p.DstPort}) || j.redirect(endpoint{p.Src, p.SrcPort})
}

// redirect says whether an end may be a redirect's.
func (j *Joiner) redirect(e endpoint) bool {
	if j.o.Port != 0 {
		return e.port == j.o.Port
	}
	return isLoopback(e.addr)
}

// learntMax bounds how many redirects are learnt.
const learntMax = 64

// known says whether an end is a redirect's.
func (j *Joiner) known(e endpoint) bool {
	if j.o.Port != 0 {
		return e.port == j.o.Port
	}
	return j.learnt[e]
}

// isLoopback: 127.0.0.0/8 and ::1.
func isLoopback(a packet.Addr) bool {
	return a.Hi == 0 && (a.Lo == 1 || a.Lo>>24 == 0xffff_7f)
}

// syn takes the SYN that begins a connection. One that may go to a redirect is held.
func (j *Joiner) syn(p *packet.Packet) bool {
	client, to := endpoint{p.Src, p.SrcPort}, endpoint{p.Dst, p.DstPort}
	if h := j.joined.get(client); h != nil {
		if h.syn && h.isn == p.Seq {
			j.rewrite(h, p)
			return true
		}
		j.joined.remove(client) // its port is used again
	}
	h := j.waiting.get(client)
	if h == nil || !h.syn || h.isn != p.Seq || h.to != to {
		h = j.wait(client)
		h.to, h.isn, h.syn = to, p.Seq, true
	}
	if h.whole || !isLoopback(to.addr) && !j.known(to) {
		return true
	}
	j.hold(h, p)
	return false
}

// wait begins a client's connection anew.
func (j *Joiner) wait(client endpoint) *half {
	h := &half{client: client}
	for _, gone := range [2]*half{j.waiting.remove(client), j.waiting.add(h)} {
		if gone != nil && gone.guessed {
			j.guesses--
		}
	}
	return h
}

// answer takes a SYN/ACK, or a RST that refuses a SYN.
func (j *Joiner) answer(p *packet.Packet) {
	h := j.waiting.get(endpoint{p.Dst, p.DstPort})
	if h == nil || !h.syn || h.whole || p.Ack != h.isn+1 {
		return
	}
	h.from = endpoint{p.Src, p.SrcPort}
	switch {
	case h.from == h.to:
		h.whole = true
	case j.known(h.to) || j.redirect(h.to) && !j.known(h.from):
		j.together(h, true)
	case j.redirect(h.from):
		j.together(h, false)
	default:
		h.whole = true // another kind of translation
	}
	j.answered(h)
}

// together joins the halves of a connection; redirect: the client sends to the
// redirect, else the redirect answers the client.
func (j *Joiner) together(h *half, redirect bool) {
	h.joined, h.redirect = true, redirect
	j.Joined++
	j.waiting.remove(h.client)
	if h.guessed {
		j.guesses--
	}
	j.joined.add(h)
	if len(j.learnt) < learntMax {
		j.learnt[h.redirectEnd()] = true
	}
}

// redirectEnd is the redirect's end of a connection that is joined.
func (h *half) redirectEnd() endpoint {
	if h.redirect {
		return h.to
	}
	return h.from
}

// server is the other one.
func (h *half) server() endpoint {
	if h.redirect {
		return h.from
	}
	return h.to
}

// rewrite replaces the redirect's end in a packet of a joined connection.
func (j *Joiner) rewrite(h *half, p *packet.Packet) {
	server := h.server()
	switch {
	case h.redirect && h.to == (endpoint{p.Dst, p.DstPort}):
		p.Dst, p.DstPort = server.addr, server.port
	case !h.redirect && h.from == (endpoint{p.Src, p.SrcPort}):
		p.Src, p.SrcPort = server.addr, server.port
	}
}

// join rewrites a packet of a connection that is joined, and joins those whose
// handshake was not captured.
func (j *Joiner) join(p *packet.Packet) {
	src, dst := endpoint{p.Src, p.SrcPort}, endpoint{p.Dst, p.DstPort}
	if h := j.joined.get(src); h != nil {
		j.rewrite(h, p)
	} else if h := j.joined.get(dst); h != nil {
		j.rewrite(h, p)
	} else {
		j.guess(p, src, dst)
	}
}
