package mptrace

import (
	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// block is a batch of records that passes two stages: follow assigns each
// packet to its flow, connect passes it to its connection. With one thread,
// each packet passes both at once; then a.block is nil. The stages share only
// blocks and flows that have ended, so they can process different blocks
// concurrently (package pipeline).
type block struct {
	source.Block
	items []item
	notes []note
}

// item is a packet in its flow.
type item struct {
	fast bool // the next four fields are valid, otherwise the last two

	step   tcp.Step
	ip     []byte // the packet, in record
	run    *source.Run
	record *capfile.Record

	packet  packet.Packet
	segment tcp.Segment
}

// note is an event between two items. Exactly one of answer, ended and again is
// set.
type note struct {
	before int    // index of the item after it
	answer []byte // a DNS answer, at timeNS
	timeNS int64
	ended  *tcp.Flow
	again  *tcp.Retransmission
}

// follow passes the records of a block to their flows.
func (a *analysis) follow(b *block) bool {
	b.items, b.notes = b.items[:0], b.notes[:0]
	a.block = b
	a.followRecords(&b.Block)
	a.block = nil
	return true
}

// track passes the records of a block to their flows and connections.
func (a *analysis) track(b *block) bool {
	a.followRecords(&b.Block)
	return a.failed() == nil
}

func (a *analysis) followRecords(b *source.Block) {
	for i := range b.Runs {
		run := &b.Runs[i]
		for j := range run.Records {
			a.followRecord(run, &run.Records[j])
		}
	}
}

// followRecord passes a record to its flow, on the fast path if possible.
func (a *analysis) followRecord(run *source.Run, r *capfile.Record) {
	it := a.next()
	if a.fast && (a.slow == nil || !a.slow()) {
		if ip, wire := run.IP(r); ip != nil && a.tracker.Fast(ip, wire, r.TimeNS, &it.step) {
			a.in.Done(run, r)
			it.fast, it.ip, it.run, it.record = true, ip, run, r
			a.put(it)
			return
		}
	}
	switch {
	case !a.in.Decode(run, r, &it.packet):
	case a.joiner != nil:
		p := it.packet
		now := a.joiner.Rewrite(&p)
		a.followPackets(a.joiner.Ready())
		if now {
			a.followPackets([]packet.Packet{p})
		}
	default:
		a.followPacket(it)
	}
}

func (a *analysis) followPackets(packets []packet.Packet) {
	for i := range packets {
		it := a.next()
		it.packet = packets[i]
		a.followPacket(it)
	}
}

// followPacket passes the packet of an item to its flow.
func (a *analysis) followPacket(it *item) {
	if a.gate != nil && !a.gate.Pass(&it.packet) {
		return
	}
	a.tracker.Add(&it.packet, &it.segment)
	it.fast = false
	a.put(it)
}

// next returns the memory for the next item.
func (a *analysis) next() *item {
	b := a.block
	if b == nil {
		return &a.item
	}
	n := len(b.items)
	if n == cap(b.items) {
		b.items = append(b.items, item{})[:n]
	}
	return &b.items[:n+1][n]
}

// put adds the item of next to the block, or connects it at once.
func (a *analysis) put(it *item) {
	if a.block == nil {
		a.connectItem(it)
		return
	}
	a.block.items = a.block.items[:len(a.block.items)+1]
}

// answered, flowEnded and sentAgain are called by the source and the tracker.
func (a *analysis) answered(message []byte, timeNS int64) {
	a.note(&note{answer: message, timeNS: timeNS})
}

func (a *analysis) flowEnded(f *tcp.Flow) { a.note(&note{ended: f}) }

func (a *analysis) sentAgain(r *tcp.Retransmission) {
	again := *r
	a.note(&note{again: &again})
}

func (a *analysis) note(n *note) {
	if a.block == nil {
		a.tell(n)
		return
	}
	n.before = len(a.block.items)
	a.block.notes = append(a.block.notes, *n)
}

// connect passes the items of a block to their connections.
func (a *analysis) connect(b *block) bool {
	at := 0
	for i := range b.notes {
		n := &b.notes[i]
		a.connectItems(b.items[at:n.before])
		at = n.before
		a.tell(n)
	}
	a.connectItems(b.items[at:])
	clear(b.notes) // flows are large: release them
	return a.failed() == nil
}

func (a *analysis) connectItems(items []item) {
	for i := range items {
		a.connectItem(&items[i])
	}
}

func (a *analysis) connectItem(it *item) {
	switch {
	case !it.fast:
		a.engine.Add(&it.segment)
	case a.engine.Fast(&it.step, it.ip):
		a.fastPackets++
	default:
		it.run.DecodeAgain(it.record, &it.packet)
		it.step.Segment(&it.packet, &it.segment)
		a.engine.Add(&it.segment)
	}
}

func (a *analysis) tell(n *note) {
	switch {
	case n.ended != nil:
		a.engine.EndFlow(n.ended)
	case n.again != nil:
		a.engine.Retransmission(n.again)
	default:
		a.reader.UDP(n.answer, n.timeNS)
	}
}

// end processes held-back packets and closes all flows and connections.
func (a *analysis) end() {
	if a.joiner != nil {
		a.followPackets(a.joiner.Flush())
	}
	a.tracker.Close()
	a.engine.Close()
}
