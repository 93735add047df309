package loopback

import (
	"slices"

	"mplab/analysis/mptrace/packet"
)

// heldMax is the maximum number of SYNs that wait for their answers.
const heldMax = 1024

// hold is a SYN that waits for its answer.
type hold struct {
	packet packet.Packet
	of     *half
	isn    uint32
}

// hold keeps a copy of a packet.
func (j *Joiner) hold(h *half, p *packet.Packet) {
	if len(j.held) == heldMax {
		j.release(0)
	}
	c := *p
	c.Options, c.Data = slices.Clone(p.Options), slices.Clone(p.Data)
	j.held = append(j.held, &hold{packet: c, of: h, isn: p.Seq})
}

// answered releases the SYNs of a connection. It rewrites them if the
// connection is joined.
func (j *Joiner) answered(h *half) {
	for i := 0; i < len(j.held); {
		if j.held[i].of != h || j.held[i].isn != h.isn {
			i++
			continue
		}
		if h.joined {
			j.rewrite(h, &j.held[i].packet)
		}
		j.release(i)
	}
}

// expire releases the SYNs whose answer did not come in time.
func (j *Joiner) expire(nowNS int64) {
	for len(j.held) > 0 && nowNS-j.held[0].packet.TimeNS > j.o.HoldNS {
		j.release(0)
	}
}

func (j *Joiner) release(i int) {
	j.ready = append(j.ready, j.held[i].packet)
	j.held = slices.Delete(j.held, i, i+1)
}
