package mptrace

import (
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/packet"
)

// track passes the records of a block to their flows and connections: on the
// fast path if possible, otherwise decoded.
func (a *analysis) track(b *source.Block) bool {
	for i := range b.Runs {
		run := &b.Runs[i]
		for j := range run.Records {
			r := &run.Records[j]
			if a.fast && (a.slow == nil || !a.slow()) {
				if ip, wire := run.IP(r); ip != nil && a.tracker.Fast(ip, wire, r.TimeNS, &a.step) {
					if a.engine.Fast(&a.step, ip) {
						a.in.Done(run, r)
						a.fastPackets++
					} else if a.in.Decode(run, r, &a.packet) {
						a.step.Segment(&a.packet, &a.segment)
						a.engine.Add(&a.segment)
					}
					continue
				}
			}
			if a.in.Decode(run, r, &a.packet) {
				a.add(&a.packet)
			}
		}
	}
	return a.failed() == nil
}

// add passes a packet to the joiner, if there is one, follows the held-back
// packets that precede it, and then the packet itself.
func (a *analysis) add(p *packet.Packet) {
	if a.joiner != nil {
		now := a.joiner.Rewrite(p)
		a.followAll(a.joiner.Ready())
		if !now {
			return
		}
	}
	a.follow(p)
}

func (a *analysis) followAll(packets []packet.Packet) {
	for i := range packets {
		a.follow(&packets[i])
	}
}

func (a *analysis) follow(p *packet.Packet) {
	if a.gate != nil && !a.gate.Pass(p) {
		return
	}
	a.tracker.Add(p, &a.segment)
	a.engine.Add(&a.segment)
}

// end processes held-back packets and closes all flows and connections.
func (a *analysis) end() {
	if a.joiner != nil {
		a.followAll(a.joiner.Flush())
	}
	a.tracker.Close()
	a.engine.Close()
}
