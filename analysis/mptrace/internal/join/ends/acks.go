package ends

import (
	"slices"
	"sort"
)

// What takes no sequence number — acknowledgements, window updates, RST — is
// matched whole: same numbers, window, timestamps, options, and IP
// identification where the network keeps it. Identical ones without
// identification are taken in their order and their delays are left out. One
// that did not arrive is counted as lost with identification alone: networks
// and receivers merge acknowledgements, and without it a merged one cannot be
// told from its twins.

// ack is a packet without sequence numbers of its own that was sent.
type ack struct {
	sentNS  int64
	lastNS  int64
	number  uint64 // acknowledged, unwrapped
	stamp   uint64 // timestamp, unwrapped
	content uint64 // a number for all the rest
	seq     uint32
	order   uint32
	id      uint16
	flags   transmissionFlag
	got     bool
	vague   bool // which of several it was is not known
}

func (a *ack) before(number, stamp uint64) bool {
	return a.number < number || a.number == number && a.stamp < stamp
}

// acks is what is under way of one direction.
type acks struct {
	row  []ack // in the order of time, and of number and stamp: neither goes back at a sender
	head int
	next int
	odd  []ack // the others: RST, and what the capture holds out of order

	started       bool
	number, stamp uint64 // the last sent
}

// mostOdd bounds acks.odd.
const mostOdd = 256

// keys unwraps the numbers of a unit.
func (a *acks) keys(u *unit) (number, stamp uint64) {
	if !a.started {
		a.number, a.stamp, a.started = 1<<32|uint64(u.ack), 1<<32|uint64(u.tsval), true
	}
	return unwrap(a.number, u.ack), unwrap(a.stamp, u.tsval)
}

func content(u *unit) uint64 {
	return mix(mix(uint64(u.seq)<<32|uint64(u.tsecr), uint64(u.window)<<8|uint64(u.flags)), u.dataAck<<32|uint64(u.options))
}

// send notes an acknowledgement; it returns one that has to make room.
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

// outcome is what became of an arrival.
type outcome uint8

const (
	matched outcome = iota
	duplicate
	unknown
)

// arrive finds what arrived. kept: the network keeps identifications; latest:
// it was sent no later.
func (a *acks) arrive(u *unit, kept bool, latest int64) (*ack, outcome) {
	number, stamp := a.keys(u)
	want := content(u)
	fits := func(o *ack) bool {
		return o.number == number && o.stamp == stamp && o.content == want && o.sentNS <= latest &&
			(!kept || o.flags&numbered == 0 || !u.numbered || o.id == u.id)
	}
	told := kept && u.numbered
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
		if told {
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
