package mptrace

import (
	"time"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// block is a batch of records that passes two stages: follow assigns each
// packet to its flow, connect passes it to its connection. With one goroutine,
// each packet passes both at once; then a.block is nil. The stages share only
// blocks and flows that have ended, so they can process different blocks
// concurrently (package pipeline). What connect needs of a packet on the fast
// path is in its item: reading the packet again from the memory of another
// processor would take longer.
type block struct {
	source.Block
	items   []item
	decoded []decoded
	notes   []note
}

// Stages holds the time that each stage of an analysis worked. With one
// goroutine, Follow includes Connect.
type Stages struct{ Read, Follow, Connect time.Duration }

// timed adds the time of a stage to a sum.
func timed(sum *time.Duration, stage func(*block) bool) func(*block) bool {
	return func(b *block) bool {
		start := time.Now()
		defer func() { *sum += time.Since(start) }()
		return stage(b)
	}
}

// item is a packet in its flow.
type item struct {
	decoded int // index of a packet that did not take the fast path; −1: it took it

	step   tcp.Step
	run    *source.Run
	record *capfile.Record
}

// decoded is a packet with all of its fields, and its segment.
type decoded struct {
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
	b.items, b.decoded, b.notes = b.items[:0], b.decoded[:0], b.notes[:0]
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
	if a.fast && (a.slow == nil || !a.slow()) {
		it := a.nextItem()
		if ip, wire := run.IP(r); ip != nil && a.tracker.Fast(ip, wire, r.TimeNS, &it.step) {
			a.in.Done(run, r)
			it.decoded, it.run, it.record = -1, run, r
			a.put()
			return
		}
	}
	d := a.nextDecoded()
	switch {
	case !a.in.Decode(run, r, &d.packet):
	case a.joiner != nil:
		p := d.packet
		now := a.joiner.Rewrite(&p)
		a.followPackets(a.joiner.Ready())
		if now {
			a.followPackets([]packet.Packet{p})
		}
	default:
		a.followPacket(d)
	}
}

func (a *analysis) followPackets(packets []packet.Packet) {
	for i := range packets {
		d := a.nextDecoded()
		d.packet = packets[i]
		a.followPacket(d)
	}
}

// followPacket passes a packet to its flow.
func (a *analysis) followPacket(d *decoded) {
	if a.gate != nil && !a.gate.Pass(&d.packet) {
		return
	}
	a.tracker.Add(&d.packet, &d.segment)
	b := a.block
	if b == nil {
		a.engine.Add(&d.segment)
		return
	}
	a.nextItem().decoded = len(b.decoded)
	b.decoded = b.decoded[:len(b.decoded)+1]
	a.put()
}

// nextItem returns the memory for the next item.
func (a *analysis) nextItem() *item {
	if a.block == nil {
		return &a.item
	}
	return next(&a.block.items)
}

// nextDecoded returns the memory for the next decoded packet.
func (a *analysis) nextDecoded() *decoded {
	if a.block == nil {
		return &a.decoded
	}
	return next(&a.block.decoded)
}

// next returns the element after the last one, without adding it.
func next[T any](list *[]T) *T {
	n := len(*list)
	if n == cap(*list) {
		*list = append(*list, *new(T))[:n]
	}
	return &(*list)[:n+1][n]
}

// put adds the item of nextItem to the block, or connects it at once.
func (a *analysis) put() {
	if a.block == nil {
		a.connectItem(&a.item, nil)
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
		a.connectItems(b.items[at:n.before], b.decoded)
		at = n.before
		a.tell(n)
	}
	a.connectItems(b.items[at:], b.decoded)
	clear(b.notes) // flows are large: release them
	return a.failed() == nil
}

func (a *analysis) connectItems(items []item, all []decoded) {
	for i := range items {
		a.connectItem(&items[i], all)
	}
}

func (a *analysis) connectItem(it *item, all []decoded) {
	if it.decoded >= 0 {
		a.engine.Add(&all[it.decoded].segment)
		return
	}
	var ip []byte
	if it.step.HasData() {
		ip, _ = it.run.IP(it.record)
	}
	if a.engine.Fast(&it.step, ip) {
		a.fastPackets++
	} else {
		d := &a.again
		it.run.DecodeAgain(it.record, &d.packet)
		it.step.Segment(&d.packet, &d.segment)
		a.engine.Add(&d.segment)
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
