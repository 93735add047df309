package model

import (
	"hash/fnv"
	"math/rand/v2"
)

// Chance draws random numbers for packets. Each effect (loss, duplication, …) has a separate generator, and every IP
// packet takes exactly one number from each generator, used or not. So the outcome for the n-th packet depends only on
// seed, link, direction and n, and a change of one condition does not shift the random sequence of another.
type Chance struct {
	loss      *rand.Rand
	state     *rand.Rand // for the loss model
	duplicate *rand.Rand
	reorder   *rand.Rand
	jitter    *rand.Rand
	bad       bool // the loss model is in the bad state
}

// draw holds the random numbers of one packet, in [0, 1).
type draw struct {
	lost      bool
	duplicate float64
	reorder   float64
	jitter    float64
}

// neutralDraw is for frames without random effects: no loss, no copy, no reordering, the median of the jitter.
var neutralDraw = draw{duplicate: 1, reorder: 1, jitter: 0.5}

// NewChance returns the generators of one direction of a link.
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

// next draws the numbers of the next IP packet.
func (c *Chance) next(params *Params) draw {
	return draw{
		lost:      c.loss.Float64()*100 < c.lossPercent(params),
		duplicate: c.duplicate.Float64(),
		reorder:   c.reorder.Float64(),
		jitter:    c.jitter.Float64(),
	}
}

// lossPercent returns the loss probability of the next packet and advances the loss model. As in netem's gemodel, the
// current state decides the loss of the packet, and then the state changes.
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
