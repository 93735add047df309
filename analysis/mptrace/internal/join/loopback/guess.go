package loopback

import "mplab/analysis/mptrace/packet"

// near is the maximum difference between the sequence numbers of the two halves
// of one connection: a receive window.
const near = 1 << 24

// guess joins a connection whose handshake was not captured. Two halves belong
// together if they have the same client endpoint and opposite directions, and
// if each one acknowledges approximately the data of the other.
func (j *Joiner) guess(p *packet.Packet, src, dst endpoint) {
	if p.Flags&(packet.SYN|packet.RST) != 0 {
		return
	}
	toRedirect, fromRedirect := j.known(dst), j.known(src)
	switch {
	case toRedirect && fromRedirect:
	case toRedirect:
		j.half(p, src, dst, true)
	case fromRedirect:
		j.half(p, dst, src, false)
	default: // the half without the redirect: only if the other half was seen
		if j.waiting.get(dst) != nil {
			j.half(p, dst, src, false)
		} else if j.waiting.get(src) != nil {
			j.half(p, src, dst, true)
		}
	}
}

// half records a packet of a client's connection; sent: the client sent it.
func (j *Joiner) half(p *packet.Packet, client, other endpoint, sent bool) {
	h := j.waiting.get(client)
	if h == nil {
		h = j.begin(client)
	}
	if h.whole || h.syn {
		return
	}
	n := numbers{next: p.Seq + p.Payload, ack: p.Ack, acks: p.Flags&packet.ACK != 0, set: true}
	end, mine := &h.from, &h.got
	if sent {
		end, mine = &h.to, &h.sent
	}
	if *end != (endpoint{}) && *end != other { // another connection with the same client port
		*h = half{client: client, guessed: true}
	}
	*end, *mine = other, n
	if !h.sent.set || !h.got.set {
		return
	}
	switch {
	case h.to == h.from:
		h.whole, h.guessed = true, false
		j.guesses--
	case h.sent.fits(h.got):
		j.together(h, j.known(h.to))
		j.rewrite(h, p)
	}
}

// begin starts a connection without a handshake.
func (j *Joiner) begin(client endpoint) *half {
	h := j.wait(client)
	h.guessed = true
	j.guesses++
	return h
}

// fits reports whether two directions acknowledge each other.
func (n numbers) fits(o numbers) bool {
	return n.acks && o.acks && nearby(n.ack, o.next) && nearby(o.ack, n.next)
}

func nearby(a, b uint32) bool {
	d := int32(a - b)
	return d < near && d > -near
}
