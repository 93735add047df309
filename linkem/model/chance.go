package model

import (
	"hash/fnv"
	"math/rand/v2"
)

// Chance draws what happens to packets. Each kind of chance has a generator of its own, and every IP packet takes
// exactly one number of each, whether or not it is used. So what happens to the n-th packet depends on seed, link,
// direction and n alone, and a change of one condition does not shift the chance of another.
type Chance struct {
	loss      *rand.Rand
	state     *rand.Rand // of the loss model
	duplicate *rand.Rand
	reorder   *rand.Rand
	jitter    *rand.Rand
	bad       bool // the state of the loss model
}

// draw is what one packet has drawn: numbers in [0, 1).
type draw struct {
	lost      bool
	duplicate float64
	reorder   float64
	jitter    float64
}

// neutralDraw is that of frames that chance leaves alone: no loss, no copy, no overtaking, the median of the jitter.
var neutralDraw = draw{duplicate: 1, reorder: 1, jitter: 0.5}

// NewChance makes the generators of one direction of a link from the seed.
func NewChance(seed uint64, link, direction string) *Chance {
	stream := func(purpose string) *rand.Rand {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(link + "/" + direction + "/" + purpose)) // never fails
		return rand.New(rand.NewPCG(seed, hash.Sum64()))
	}
	return &Chance{
		loss: stream("loss"), state: stream("state"), duplicate: stream("duplicate"), reorder: stream("reorder"),
		jitter: stream("jitter"),
	}
}

// next draws for the next IP packet.
func (c *Chance) next(params *Params) draw {
	return draw{
		lost:      c.loss.Float64()*100 < c.lossPercent(params),
		duplicate: c.duplicate.Float64(),
		reorder:   c.reorder.Float64(),
		jitter:    c.jitter.Float64(),
	}
}

// lossPercent gives the chance of the next packet to be lost, and takes the loss model a step further. As in netem's
// gemodel, a packet is lost or not in the state that the one before left, and then the state changes.
func (c *Chance) lossPercent(params *Params) float64 {
	turn := c.state.Float64() * 100
	model := params.LossModel
	switch {
	case model == nil:
		c.bad = false
		return params.LossPercent
	case c.bad:
		c.bad = turn >= model.RPercent
		return model.BadLossPercent
	default:
		c.bad = turn < model.PPercent
		return model.GoodLossPercent
	}
}
