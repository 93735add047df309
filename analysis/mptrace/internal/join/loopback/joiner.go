package loopback

import (
	"mplab/analysis/mptrace/packet"
)

// Options of a [Joiner]. Zero values select the defaults.
type Options struct {
	// Port is the redirect's port. If it is 0, redirects are recognised by
	// handshakes whose SYN and SYN/ACK have different server addresses, one of
	// them a loopback address.
	Port uint16
	// Connections bounds the number of redirected connections that are
	// remembered, and also the number of incomplete handshakes; default 16384.
	Connections int
	// HoldNS is how long a SYN waits for its answer; default 3 s.
	HoldNS int64
}

// Joiner rewrites packets so that both halves of a redirected connection are
// between client and server. It does not change connections that have both
// directions between the same two endpoints. It is not safe for concurrent use.
//
// The first SYN of a redirected connection does not contain the server. It is
// held until its answer arrives, and released immediately before the answer.
type Joiner struct {
	o       Options
	joined  *table            // connections whose halves were joined
	waiting *table            // handshakes, and halves without a handshake
	learnt  map[endpoint]bool // learnt redirects, if no port is given
	guesses int               // number of halves without a handshake
	held    []*hold           // in the order of time
	ready   []packet.Packet
	// Joined counts the connections whose halves were joined.
	Joined int
}

type endpoint struct {
	addr packet.Addr
	port uint16
}

// half is the state of one client endpoint.
type half struct {
	client   endpoint
	to       endpoint // destination of the client's packets; zero: not seen
	from     endpoint // source of the packets to the client; zero: not seen
	isn      uint32   // of the client's SYN, with syn
	syn      bool
	joined   bool
	whole    bool // both directions have the same other end: do not change
	redirect bool // joined: the client sends to the redirect (otherwise the redirect answers)
	guessed  bool // no handshake was seen
	sent     numbers
	got      numbers
}

// numbers are the sequence numbers of the last segment of a direction.
type numbers struct {
	next, ack uint32
	acks, set bool
}

// New returns a joiner.
func New(o Options) *Joiner {
	if o.Connections == 0 {
		o.Connections = 1 << 14
	}
	if o.HoldNS == 0 {
		o.HoldNS = 3e9
	}
	return &Joiner{o: o, joined: newTable(o.Connections), waiting: newTable(o.Connections), learnt: map[endpoint]bool{}}
}

// Rewrite takes the next packet and replaces the redirect's endpoint in it. It
// returns false if it holds the packet back: the caller must not use the packet
// now; Ready returns it later. After each call, process the packets of Ready
// before p.
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

// Ready returns the held packets that precede the packet of the last Rewrite.
// They are valid until the next call.
func (j *Joiner) Ready() []packet.Packet { return j.ready }

// Flush returns the packets that are still held at the end of the input.
func (j *Joiner) Flush() []packet.Packet {
	j.ready = j.ready[:0]
	for len(j.held) > 0 {
		j.release(0)
	}
	return j.ready
}

// concerns reports whether a packet may belong to a redirect. It is a fast
// check for all other packets.
func (j *Joiner) concerns(p *packet.Packet) bool {
	return j.guesses > 0 || j.redirect(endpoint{p.Dst, p.DstPort}) || j.redirect(endpoint{p.Src, p.SrcPort})
}

// redirect reports whether an endpoint may be a redirect.
func (j *Joiner) redirect(e endpoint) bool {
	if j.o.Port != 0 {
		return e.port == j.o.Port
	}
	return isLoopback(e.addr)
}

// learntMax is the maximum number of learnt redirects.
const learntMax = 64

// known reports whether an endpoint is a redirect.
func (j *Joiner) known(e endpoint) bool {
	if j.o.Port != 0 {
		return e.port == j.o.Port
	}
	return j.learnt[e]
}

// isLoopback reports whether an address is in 127.0.0.0/8 or is ::1.
func isLoopback(a packet.Addr) bool {
	return a.Hi == 0 && (a.Lo == 1 || a.Lo>>24 == 0xffff_7f)
}

// syn handles the SYN that starts a connection. It holds a SYN that may go to a
// redirect.
func (j *Joiner) syn(p *packet.Packet) bool {
	client, to := endpoint{p.Src, p.SrcPort}, endpoint{p.Dst, p.DstPort}
	if h := j.joined.get(client); h != nil {
		if h.syn && h.isn == p.Seq {
			j.rewrite(h, p)
			return true
		}
		j.joined.remove(client) // the client port is reused
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

// wait replaces the state of a client by a new handshake.
func (j *Joiner) wait(client endpoint) *half {
	h := &half{client: client}
	for _, gone := range [2]*half{j.waiting.remove(client), j.waiting.add(h)} {
		if gone != nil && gone.guessed {
			j.guesses--
		}
	}
	return h
}

// answer handles a SYN/ACK, or an RST that refuses a SYN.
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
		h.whole = true // another kind of address translation
	}
	j.answered(h)
}

// together joins the halves of a connection. redirect: the client sends to the
// redirect; otherwise the redirect answers the client.
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

// redirectEnd returns the redirect's endpoint of a joined connection.
func (h *half) redirectEnd() endpoint {
	if h.redirect {
		return h.to
	}
	return h.from
}

// server returns the server's endpoint of a joined connection.
func (h *half) server() endpoint {
	if h.redirect {
		return h.from
	}
	return h.to
}

// rewrite replaces the redirect's endpoint in a packet of a joined connection.
func (j *Joiner) rewrite(h *half, p *packet.Packet) {
	server := h.server()
	switch {
	case h.redirect && h.to == (endpoint{p.Dst, p.DstPort}):
		p.Dst, p.DstPort = server.addr, server.port
	case !h.redirect && h.from == (endpoint{p.Src, p.SrcPort}):
		p.Src, p.SrcPort = server.addr, server.port
	}
}

// join rewrites a packet of a joined connection, and joins connections whose
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
