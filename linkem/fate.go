package linkem

import (
	"hash/fnv"
	"math/rand/v2"
)

// fate draws what happens to packets by chance. Loss and jitter have generators of their own, so that whether the n-th
// packet is lost depends on seed, link, direction and n alone.
type fate struct {
	loss   *rand.Rand
	jitter *rand.Rand
}

func newFate(seed uint64, link, direction string) fate {
	stream := func(purpose string) *rand.Rand {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(link + "/" + direction + "/" + purpose)) // never fails
		return rand.New(rand.NewPCG(seed, hash.Sum64()))
	}
	return fate{loss: stream("loss"), jitter: stream("jitter")}
}

// lost draws for one packet. It draws at 0 % as well: the n-th packet keeps the n-th number, whatever the rate of loss.
func (f fate) lost(percent float64) bool { return f.loss.Float64()*100 < percent }

// offset draws uniformly from [-jitter, +jitter].
func (f fate) offset(jitter int64) int64 {
	if jitter == 0 {
		return 0
	}
	return f.jitter.Int64N(2*jitter+1) - jitter
}
