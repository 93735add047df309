package tcp

import (
	"encoding/binary"
	"testing"

	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Initial sequence numbers of all conversations; that of Down wraps around
// soon.
const (
	isnUp   = 1000
	isnDown = 0xffffff00
)

const ms = 1e6

// talk is a conversation under construction. Packets are a millisecond apart,
// plus the time of wait. Numbers are relative: the first byte of payload is 0.
type talk struct {
	ends    [2]Endpoint
	now     int64
	next    [2]int // bytes sent so far
	isn     [2]uint32
	id      [2]uint16
	packets []packet.Packet
}

// change modifies a packet.
type change func(*packet.Packet)

func newTalk() *talk {
	return &talk{
		ends: [2]Endpoint{
			{packet.Addr{Lo: 0xffff0a400102}, 40000},
			{packet.Addr{Lo: 0xffff0a400302}, 443},
		},
		now: 1e18, isn: [2]uint32{isnUp, isnDown}, id: [2]uint16{100, 60000},
	}
}

// wait adds time before the next packet, in addition to the millisecond.
func (k *talk) wait(ns int64) { k.now += ns }

// send adds a packet; seq and ack are relative.
func (k *talk) send(dir int, flags uint8, seq, ack, payload int, changes ...change) {
	k.now += ms
	k.id[dir]++
	from, to := k.ends[dir], k.ends[1-dir]
	p := packet.Packet{
		TimeNS: k.now, Src: from.Addr, SrcPort: from.Port, Dst: to.Addr, DstPort: to.Port, TTL: 64, IPID: k.id[dir],
		Flags: flags, Seq: k.isn[dir] + 1 + uint32(seq), Payload: uint32(payload), Window: 500,
	}
	if flags&packet.ACK != 0 {
		p.Ack = k.isn[1-dir] + 1 + uint32(ack)
	}
	p.Checksum = uint16(len(k.packets)) // every packet has a different one
	for _, c := range changes {
		c(&p)
	}
	k.packets = append(k.packets, p)
}

// data sends payload at a relative number and acknowledges everything sent so
// far in the other direction.
func (k *talk) data(dir, seq, payload int, changes ...change) {
	k.send(dir, packet.ACK, seq, k.next[1-dir], payload, changes...)
	k.next[dir] = max(k.next[dir], seq+payload)
}

func (k *talk) up(seq, payload int, changes ...change)   { k.data(Up, seq, payload, changes...) }
func (k *talk) down(seq, payload int, changes ...change) { k.data(Down, seq, payload, changes...) }

// ack acknowledges upstream data below a number, from Down.
func (k *talk) ack(number int, changes ...change) {
	k.send(Down, packet.ACK, k.next[Down], number, 0, changes...)
}

func (k *talk) sendUp(payload int, c ...change)   { k.up(k.next[Up], payload, c...) }
func (k *talk) sendDown(payload int, c ...change) { k.down(k.next[Down], payload, c...) }
func (k *talk) ackUp(c ...change)                 { k.ack(k.next[Up], c...) }
func (k *talk) ackDown(c ...change) {
	k.send(Up, packet.ACK, k.next[Up], k.next[Down], 0, c...)
}

// open plays the handshake; SYN, SYN/ACK and ACK have the same changes.
func (k *talk) open(changes ...change) {
	k.send(Up, packet.SYN, -1, 0, 0, changes...)
	k.send(Down, packet.SYN|packet.ACK, -1, 0, 0, changes...)
	k.send(Up, packet.ACK, 0, 0, 0)
}

// close ends both directions.
func (k *talk) close() {
	k.send(Up, packet.FIN|packet.ACK, k.next[Up], k.next[Down], 0)
	k.send(Down, packet.FIN|packet.ACK, k.next[Down], k.next[Up]+1, 0)
	k.send(Up, packet.ACK, k.next[Up]+1, k.next[Down]+1, 0)
}

// lossyRound sends a window of segments. The third is lost before the capture,
// reported by SACKs and retransmitted, and then everything is acknowledged.
func (k *talk) lossyRound(window int) {
	const size = 1448
	from := k.next[Up]
	for i := range window {
		if i == 2 {
			k.next[Up] += size
			continue
		}
		k.sendUp(size, withTimestamps)
		switch {
		case i < 2:
			k.ackUp(withTimestamps)
		default:
			k.ack(from+2*size, withTimestamps, k.sack(from+3*size, k.next[Up]))
		}
	}
	k.up(from+2*size, size, withTimestamps)
	k.ackUp(withTimestamps)
}

// withTimestamps adds the timestamps option with a meaningless TSecr.
func withTimestamps(p *packet.Packet) {
	p.Has |= packet.HasTimestamps
	p.TSVal = uint32(p.TimeNS / ms)
	p.Options = append(p.Options, 1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0)
}

// stamps adds the timestamps option.
func stamps(val, ecr uint32) change {
	return func(p *packet.Packet) {
		withTimestamps(p)
		p.TSVal, p.TSEcr = val, ecr
	}
}

// sack adds SACK blocks of upstream data: pairs of relative numbers.
func (k *talk) sack(numbers ...int) change {
	return func(p *packet.Packet) {
		p.Has |= packet.HasSACK
		p.Options = append(p.Options, 1, 1, 5, byte(2+4*len(numbers)))
		for _, n := range numbers {
			p.Options = binary.BigEndian.AppendUint32(p.Options, k.isn[Up]+1+uint32(n))
		}
	}
}

func window(w uint16) change      { return func(p *packet.Packet) { p.Window = w } }
func ident(id uint16) change      { return func(p *packet.Packet) { p.IPID = id } }
func quirk(q packet.Quirk) change { return func(p *packet.Packet) { p.Quirks |= q } }

// scale and mss are options of a SYN.
func scale(shift byte) change {
	return func(p *packet.Packet) {
		p.Has |= packet.HasWindowScale
		p.Options = append(p.Options, 3, 3, shift)
	}
}

func mss(size uint16) change {
	return func(p *packet.Packet) {
		p.Has |= packet.HasMSS
		p.Options = append(p.Options, 2, 4, byte(size>>8), byte(size))
	}
}

// outcome holds a tracker's results for a conversation.
type outcome struct {
	tracker  *Tracker
	segments []Segment
	flows    []*Flow // in the order of their ends
	records  []Retransmission
}

// play passes the conversation to a tracker and closes it.
func (k *talk) play(o Options) *outcome {
	out := &outcome{}
	o.OnEnd = func(f *Flow) { out.flows = append(out.flows, f) }
	o.OnRetransmission = func(r *Retransmission) { out.records = append(out.records, *r) }
	out.tracker = NewTracker(o)
	for i := range k.packets {
		var seg Segment
		out.tracker.Add(&k.packets[i], &seg)
		seg.Gaps = append(seg.Gaps[:0:0], seg.Gaps...)
		out.segments = append(out.segments, seg)
	}
	out.tracker.Close()
	return out
}

// one returns the only flow.
func (o *outcome) one(t *testing.T) *Flow {
	t.Helper()
	if len(o.flows) != 1 {
		t.Fatalf("%d flows, want one", len(o.flows))
	}
	return o.flows[0]
}

func (f *Flow) subflow() (row tables.Subflow) {
	f.Row(&row)
	return row
}

func (f *Flow) row(dir uint8) (row tables.Direction) {
	f.DirectionRow(dir, &row)
	return row
}
