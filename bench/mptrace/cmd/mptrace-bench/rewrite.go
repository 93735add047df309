package main

import (
	"encoding/binary"
	"slices"
)

// learned holds the information about a connection from its handshakes.
type learned struct {
	identity
	joins map[flowKey]*[2]uint32 // nonces of client and server, by the client's flow
}

// place identifies the connection and the sender of a flow.
type place struct {
	conn   *learned
	sender int // 0: client, 1: server
	flow   flowKey
}

// learn finds the MPTCP connections of a trace that contains their starts. The
// client must open all subflows, as Linux does.
func learn(frames []frame) map[flowKey]place {
	places := map[flowKey]place{}
	byToken := map[uint32]*learned{}
	pending := map[flowKey]uint64{} // the server's key, by the client's flow
	join := func(k flowKey, token uint32) {
		if c := byToken[token]; c != nil {
			c.joins[k] = new([2]uint32)
			places[k], places[k.turned()] = place{c, 0, k}, place{c, 1, k}
		}
	}
	for i := range frames {
		b := frames[i].data
		h, _ := headers(b)
		k := keyOf(b, h)
		options(b, h, func(at, size int) {
			if b[at] != optionMPTCP || size < 4 {
				return
			}
			o := b[at : at+size]
			switch subtype := o[2] >> 4; {
			case subtype == subCapable && size == 12:
				pending[k.turned()] = binary.BigEndian.Uint64(o[4:])
			case subtype == subCapable && size >= 20 && places[k].conn == nil:
				c := &learned{newIdentity(o[2]&15, binary.BigEndian.Uint64(o[4:]), binary.BigEndian.Uint64(o[12:])), map[flowKey]*[2]uint32{}}
				if c.keys[1] == pending[k] {
					byToken[c.tokens[1]] = c
					places[k], places[k.turned()] = place{c, 0, k}, place{c, 1, k}
				}
			case subtype == subJoin && size == 12:
				join(k, binary.BigEndian.Uint32(o[4:]))
				if p, ok := places[k]; ok {
					p.conn.joins[k][0] = binary.BigEndian.Uint32(o[8:])
				}
			case subtype == subJoin && size == 16:
				if p, ok := places[k]; ok {
					p.conn.joins[p.flow][1] = binary.BigEndian.Uint32(o[12:])
				}
			}
		})
	}
	return places
}

// remade returns a frame as it would be if its connection had other keys or the
// other protocol version. It can rewrite a SYN with MP_CAPABLE, because learn
// has seen the whole trace.
func remade(f frame, places map[flowKey]place, version uint8, round uint64) frame {
	h, _ := headers(f.data)
	p, ok := places[keyOf(f.data, h)]
	if !ok {
		return f
	}
	r := rewriter{p, p.conn.another(version, round)}
	var list []byte
	options(f.data, h, func(at, size int) {
		list = r.option(list, f.data[at:at+size])
	})
	return f.withOptions(h, list)
}

// withOptions replaces the options of a frame. It aligns them with NOPs as
// Linux does.
func (f frame) withOptions(h header, list []byte) frame {
	var aligned []byte
	for len(list) > 0 {
		size := int(list[1])
		for pad := -size & 3; pad > 0; pad-- {
			aligned = append(aligned, 1)
		}
		aligned = append(aligned, list[:size]...)
		list = list[size:]
	}
	rest := checksumRest(f.data, h)
	b := slices.Concat(f.data[:h.options], aligned)
	grown := h.options + len(aligned) - h.end
	end := h.end + grown
	b[h.tcp+12] = b[h.tcp+12]&15 | byte((end-h.tcp)/4)<<4
	binary.BigEndian.PutUint16(b[ipAt+2:], uint16(int(binary.BigEndian.Uint16(b[ipAt+2:]))+grown))
	h.end = end
	reseal(b, h)
	resealTCP(b, h, rest)
	return frame{f.timeNS, f.iface, f.origin + grown, b}
}

// rewriter rewrites the options of one segment for another identity.
type rewriter struct {
	place
	to identity
}

// option appends the rewritten option, or nothing if the version does not have
// it.
func (r rewriter) option(list, o []byte) []byte {
	if o[0] != optionMPTCP || len(o) < 4 {
		return append(list, o...)
	}
	start := len(list)
	be := binary.BigEndian
	switch o[2] >> 4 {
	case subCapable:
		return r.capable(list, o)
	case subJoin:
		list = append(list, o...)
		nonces := *r.conn.joins[r.flow]
		switch n := list[start:]; len(n) {
		case 12:
			be.PutUint32(n[4:], r.to.tokens[1])
		case 16:
			copy(n[4:12], r.to.hmac(1, nonces))
		case 24:
			copy(n[4:24], r.to.hmac(0, nonces))
		}
		return list
	case subDSS:
		return r.dss(list, o)
	case subAddAddr, subReset:
		if r.to.version == 0 {
			return list
		}
	case subFail:
		list = append(list, o...)
		be.PutUint64(list[start+4:], be.Uint64(o[4:])-r.conn.idsn[1-r.sender]+r.to.idsn[1-r.sender])
		return list
	case subFastclose:
		list = append(list, o...)
		be.PutUint64(list[start+4:], r.to.keys[1-r.sender])
		return list
	}
	return append(list, o...)
}

// capable rewrites MP_CAPABLE. In version 0, the SYN also has the client's key,
// and data has a DSS instead of MP_CAPABLE.
func (r rewriter) capable(list, o []byte) []byte {
	be := binary.BigEndian
	old := r.to.version == 0
	if len(o) >= 22 && old {
		first := be.AppendUint32([]byte{optionMPTCP, 18, subDSS << 4, dssAck | dssMap}, uint32(r.to.idsn[1])+1)
		first = be.AppendUint32(first, uint32(r.to.idsn[0])+1)
		first = be.AppendUint32(first, 1)
		return append(list, append(first, o[20:22]...)...)
	}
	start := len(list)
	list = append(list, o...)
	list[start+2] = subCapable<<4 | r.to.version
	switch len(o) {
	case 4:
		if old {
			list[start+1] = 12
			list = be.AppendUint64(list, r.to.keys[0])
		}
	case 12:
		be.PutUint64(list[start+4:], r.to.keys[r.sender])
	default:
		be.PutUint64(list[start+4:], r.to.keys[0])
		be.PutUint64(list[start+12:], r.to.keys[1])
	}
	return list
}

// dss moves the numbers of a data sequence signal. In version 0 they have 32
// bits, as sent by its implementation.
func (r rewriter) dss(list, o []byte) []byte {
	d := dssOf(o)
	narrow := r.to.version == 0
	flags := o[3]
	if narrow {
		flags &^= dssAck64 | dssMap64
	}
	start := len(list)
	list = append(list, optionMPTCP, 0, o[2], flags)
	move := func(value uint64, wide bool, end int) {
		value += r.to.idsn[end] - r.conn.idsn[end]
		if wide && !narrow {
			list = binary.BigEndian.AppendUint64(list, value)
		} else {
			list = binary.BigEndian.AppendUint32(list, uint32(value))
		}
	}
	if d.ack != 0 {
		move(number(o[d.ack:], d.ack64), d.ack64, 1-r.sender)
	}
	if d.dsn != 0 {
		move(number(o[d.dsn:], d.dsn64), d.dsn64, r.sender)
		list = append(list, o[d.ssn:]...)
	}
	list[start+1] = byte(len(list) - start)
	return list
}
