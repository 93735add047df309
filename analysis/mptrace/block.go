package mptrace

import (
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// block is a run of packets on its way through the stages of an analysis:
//
//   - source.Source.Next reads and decodes them;
//   - follow finds out what each is to its flow;
//   - connect takes that to the connections, and to all who listen there.
//
// The stages share nothing but blocks and flows that have ended, so they may
// work side by side on different blocks (package pipeline).
type block struct {
	source.Block
	segments []tcp.Segment
	notes    []note
	held     []packet.Packet // of segments: packets that were held back
}

// note is what is to be told between two segments.
type note struct {
	before int // the number of the second one

	// One of:
	answer *source.Answer
	ended  *tcp.Flow
	again  *tcp.Retransmission
}

// follow takes the packets of a block to their flows. Answers of DNS are for
// the next stage.
func (a *analysis) follow(b *block) bool {
	b.segments, b.notes, b.held = b.segments[:0], b.notes[:0], b.held[:0]
	a.block = b
	at := 0
	for i := range b.Answers {
		answer := &b.Answers[i]
		a.followAll(b.Packets[at:answer.Before])
		at = answer.Before
		a.note(note{answer: answer})
	}
	a.followAll(b.Packets[at:])
	a.block = nil
	return true
}

func (a *analysis) followAll(packets []packet.Packet) {
	b := a.block
	for i := range packets {
		p := &packets[i]
		if a.joiner != nil && !a.join(p) {
			continue
		}
		a.tracker.Add(p, b.next())
		b.segments = b.segments[:len(b.segments)+1]
	}
}

// join says whether a packet is to be taken now, and takes those that were
// held back and come before it.
func (a *analysis) join(p *packet.Packet) bool {
	now := a.joiner.Rewrite(p)
	a.followHeld(a.joiner.Ready())
	return now
}

func (a *analysis) followHeld(packets []packet.Packet) {
	b := a.block
	for _, p := range packets {
		b.held = append(b.held, p)
		a.tracker.Add(&b.held[len(b.held)-1], b.next())
		b.segments = b.segments[:len(b.segments)+1]
	}
}

// next is the place of the next segment, behind those that there are.
func (b *block) next() *tcp.Segment {
	n := len(b.segments)
	if n == cap(b.segments) {
		b.segments = append(b.segments, tcp.Segment{})[:n]
	}
	return &b.segments[:n+1][n]
}

// flowEnded and sentAgain are told by the tracker.
func (a *analysis) flowEnded(f *tcp.Flow) { a.note(note{ended: f}) }

func (a *analysis) sentAgain(r *tcp.Retransmission) {
	again := *r
	a.note(note{again: &again})
}

// note keeps a note for the next stage. There is none any more when the flows
// are ended for want of packets.
func (a *analysis) note(n note) {
	if a.block == nil {
		a.tell(&n)
		return
	}
	n.before = len(a.block.segments)
	a.block.notes = append(a.block.notes, n)
}

// connect takes the segments of a block to their connections.
func (a *analysis) connect(b *block) bool {
	at := 0
	for i := range b.notes {
		n := &b.notes[i]
		a.addAll(b.segments[at:n.before])
		at = n.before
		a.tell(n)
	}
	a.addAll(b.segments[at:])
	clear(b.notes) // flows are large
	return a.failed() == nil
}

func (a *analysis) addAll(segments []tcp.Segment) {
	for i := range segments {
		a.engine.Add(&segments[i])
	}
}

func (a *analysis) tell(n *note) {
	switch {
	case n.answer != nil:
		a.reader.UDP(n.answer.Message, n.answer.TimeNS)
	case n.ended != nil:
		a.engine.EndFlow(n.ended)
	default:
		a.engine.Retransmission(n.again)
	}
}

// end takes what is left when there are no more packets.
func (a *analysis) end() {
	if a.joiner != nil {
		var b block
		a.block = &b
		a.followHeld(a.joiner.Flush())
		a.block = nil
		a.connect(&b)
	}
	a.tracker.Close()
	a.engine.Close()
}
