package ends

import "mplab/analysis/mptrace/packet"

// unit is a packet at one end, with its time by the phone's clock.
type unit struct {
	timeNS       int64
	flow         *flow
	dataAck      uint64
	seq, ack     uint32
	tsval, tsecr uint32
	length       uint32 // in sequence numbers: payload, SYN and FIN
	payload      uint32
	options      uint32 // hash of the options; 0: some are missing
	window, id   uint16
	optionBytes  uint16 // size of the options, which reduces the payload per packet
	flags        uint8
	dir          uint8
	stamped      bool // tsval and tsecr are valid
	numbered     bool // id is valid
}

func unitOf(p *packet.Packet, f *flow, dir uint8, timeNS int64) unit {
	u := unit{
		timeNS: timeNS, flow: f, dir: dir, seq: p.Seq, ack: p.Ack, payload: p.Payload, length: p.Payload,
		window: p.Window, id: p.IPID, flags: p.Flags, optionBytes: uint16(len(p.Options)),
		stamped: p.Has&packet.HasTimestamps != 0, numbered: p.Quirks&packet.IPv6 == 0 && p.IPID != 0,
	}
	if u.stamped {
		u.tsval, u.tsecr = p.TSVal, p.TSEcr
	}
	if p.Flags&packet.SYN != 0 {
		u.length++
	}
	if p.Flags&packet.FIN != 0 {
		u.length++
	}
	if u.length == 0 && p.Has&^(packet.HasTimestamps) != 0 && p.Quirks&packet.OptionsCut == 0 {
		u.options = sum(p.Options) | 1
	}
	return u
}

// sum returns the FNV-1a hash.
func sum(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

// unwrap extends a number to 64 bits so that it is closest to near.
func unwrap(near uint64, n uint32) uint64 { return near + uint64(int64(int32(n-uint32(near)))) }
