package mptrace

import (
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// block is a batch of packets that passes the stages of an analysis:
//
//   - source.Source.Next reads and decodes the packets;
//   - follow assigns each packet to its flow;
//   - connect passes the resulting segments to the connections and their
//     observers.
//
// The stages share only blocks and flows that have ended, so they can process
// different blocks concurrently (package pipeline).
type block struct {
	source.Block
	segments []tcp.Segment
	notes    []note
	held     []packet.Packet // packets of segments that the joiner had held back
}

// note is an event between two segments.
type note struct {
	before int // index of the segment after it

	// Exactly one is set:
	answer *source.Answer
	ended  *tcp.Flow
	again  *tcp.Retransmission
}

// follow passes the packets of a block to their flows. It leaves DNS answers to
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

// join passes a packet to the joiner, follows the held-back packets that
// precede it, and reports whether the packet itself must be followed now.
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

// next returns the slot for the next segment and grows the list if it is full.
func (b *block) next() *tcp.Segment {
	n := len(b.segments)
	if n == cap(b.segments) {
		b.segments = append(b.segments, tcp.Segment{})[:n]
	}
	return &b.segments[:n+1][n]
}

// flowEnded and sentAgain are callbacks of the tracker.
func (a *analysis) flowEnded(f *tcp.Flow) { a.note(note{ended: f}) }

func (a *analysis) sentAgain(r *tcp.Retransmission) {
	again := *r
	a.note(note{again: &again})
}

// note keeps a note for the next stage. Without a current block (flows that end
// after the last packet) it delivers the note at once.
func (a *analysis) note(n note) {
	if a.block == nil {
		a.tell(&n)
		return
	}
	n.before = len(a.block.segments)
	a.block.notes = append(a.block.notes, n)
}

// connect passes the segments of a block to their connections.
func (a *analysis) connect(b *block) bool {
	at := 0
	for i := range b.notes {
		n := &b.notes[i]
		a.addAll(b.segments[at:n.before])
		at = n.before
		a.tell(n)
	}
	a.addAll(b.segments[at:])
	clear(b.notes) // flows are large: release them
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

// end processes held-back packets and closes all flows and connections.
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
