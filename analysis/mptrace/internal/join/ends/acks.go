package ends

import (
	"slices"
	"sort"
)

// Packets without sequence numbers (acknowledgements, window updates, RST) are
// matched as a whole: by their numbers, window, timestamps and options, and by
// the IP identification if the network preserves it. Identical packets without
// identification are matched in order, and their delays are discarded. A packet
// that did not arrive counts as lost only if it has an identification: networks
// and receivers merge acknowledgements, and without an identification a merged
// acknowledgement cannot be distinguished from its duplicates.

// ack is a sent packet that occupies no sequence numbers.
type ack struct {
	sentNS  int64
	lastNS  int64
	number  uint64 // acknowledgement number, unwrapped
	stamp   uint64 // timestamp, unwrapped
	content uint64 // hash of the other fields
	seq     uint32
	order   uint32
	id      uint16
	flags   transmissionFlag
	got     bool
	vague   bool // ambiguous: several identical packets were in flight
}

func (a *ack) before(number, stamp uint64) bool {
	return a.number < number || a.number == number && a.stamp < stamp
}

// acks holds the acknowledgements in flight in one direction.
type acks struct {
	row  []ack // in the order of time, number and timestamp, none of which decreases at a sender
	head int
	next int
	odd  []ack // all others: RST, and packets that the capture holds out of order

	started       bool
	number, stamp uint64 // of the last sent one
}

// mostOdd bounds acks.odd.
const mostOdd = 256

// keys returns the unwrapped acknowledgement number and timestamp of a unit.
func (a *acks) keys(u *unit) (number, stamp uint64) {
	if !a.started {
		a.number, a.stamp, a.started = 1<<32|uint64(u.ack), 1<<32|uint64(u.tsval), true
	}
	return unwrap(a.number, u.ack), unwrap(a.stamp, u.tsval)
}

func content(u *unit) uint64 {
	return mix(mix(uint64(u.seq)<<32|uint64(u.tsecr), uint64(u.window)<<8|uint64(u.flags)), u.dataAck<<32|uint64(u.options))
}

// send records a sent acknowledgement. It returns an older one that was dropped
// to make room, or nil.
func (a *acks) send(u *unit, order uint32, flags transmissionFlag) (dropped *ack) {
	number, stamp := a.keys(u)
	one := ack{sentNS: u.timeNS, number: number, stamp: stamp, content: content(u), seq: u.seq, order: order, id: u.id, flags: flags}
	if number >= a.number && stamp >= a.stamp && u.flags&flagRST == 0 {
		a.number, a.stamp = number, stamp
		a.row = append(a.row, one)
		return nil
	}
	if len(a.odd) == mostOdd {
		first := a.odd[0]
		dropped = &first
		a.odd = slices.Delete(a.odd, 0, 1)
	}
	a.odd = append(a.odd, one)
	return dropped
}

// outcome is the result of matching an arrival.
type outcome uint8

const (
	matched outcome = iota
	duplicate
	unknown
)

// arrive matches an arriving packet. kept: the network preserves IP
// identifications; latest: the latest possible sending time.
func (a *acks) arrive(u *unit, kept bool, latest int64) (*ack, outcome) {
	number, stamp := a.keys(u)
	want := content(u)
	fits := func(o *ack) bool {
		return o.number == number && o.stamp == stamp && o.content == want && o.sentNS <= latest &&
			(!kept || o.flags&numbered == 0 || !u.numbered || o.id == u.id)
	}
	known := kept && u.numbered
	i := a.next
	if i < a.head || i >= len(a.row) || !fits(&a.row[i]) || a.row[i].got {
		i = a.head + sort.Search(len(a.row)-a.head, func(i int) bool { return !a.row[a.head+i].before(number, stamp) })
	}
	var found *ack
	result := unknown
	for ; i < len(a.row) && a.row[i].number == number && a.row[i].stamp == stamp; i++ {
		if !fits(&a.row[i]) {
			continue
		}
		if a.row[i].got {
			result = duplicate
			continue
		}
		if found != nil {
			found.vague, a.row[i].vague = true, true
			break
		}
		found, a.next = &a.row[i], i+1
		if known {
			break
		}
	}
	for i := range a.odd {
		if found == nil && fits(&a.odd[i]) {
			if !a.odd[i].got {
				found = &a.odd[i]
			} else {
				result = duplicate
			}
		}
	}
	if found == nil {
		return nil, result
	}
	found.got, found.lastNS = true, u.timeNS
	return found, matched
}
