package tcp

import (
	"math/bits"
	"math/rand/v2"

	"mplab/analysis/mptrace/packet"
)

// table maps 4-tuples to flows: open addressing with linear probing, at most
// two thirds full. Both directions of a flow have the same hash.
type table struct {
	slots []entry
	used  int
	seed  uint64 // random, so that an attacker cannot make flows collide
}

type entry struct {
	flow *Flow // nil: free
	hash uint32
}

const firstSlots = 64

func newTable() table {
	return table{slots: make([]entry, firstSlots), seed: rand.Uint64()}
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func (t *table) hashEnd(a packet.Addr, port uint16) uint64 {
	return mix(a.Lo^uint64(port)<<48^t.seed, a.Hi^uint64(port)^0x9e3779b97f4a7c15)
}

func (t *table) hash(a, b packet.Addr, portA, portB uint16) uint64 {
	return mix(t.hashEnd(a, portA)+t.hashEnd(b, portB), 0xd6e8feb86659fd93)
}

func (t *table) hashOf(f *Flow) uint64 {
	return t.hash(f.Ends[Up].Addr, f.Ends[Down].Addr, f.Ends[Up].Port, f.Ends[Down].Port)
}

// find returns the flow of a packet, or nil, the packet's direction and its
// hash.
func (t *table) find(p *packet.Packet) (*Flow, uint8, uint64) {
	hash, mask := t.hash(p.Src, p.Dst, p.SrcPort, p.DstPort), uint32(len(t.slots)-1)
	for i := uint32(hash) & mask; ; i = (i + 1) & mask {
		e := &t.slots[i]
		if e.flow == nil {
			return nil, Up, hash
		}
		if e.hash == uint32(hash) {
			if dir, ok := e.flow.direction(p); ok {
				return e.flow, dir, hash
			}
		}
	}
}

func (t *table) insert(f *Flow) {
	if 3*t.used >= 2*len(t.slots) {
		old := t.slots
		t.slots = make([]entry, 2*len(old))
		for _, e := range old {
			if e.flow != nil {
				t.put(e)
			}
		}
	}
	t.put(entry{f, uint32(t.hashOf(f))})
	t.used++
}

func (t *table) put(e entry) {
	mask := uint32(len(t.slots) - 1)
	i := e.hash & mask
	for t.slots[i].flow != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = e
}

// remove removes a flow and moves displaced entries up.
func (t *table) remove(f *Flow) {
	mask := uint32(len(t.slots) - 1)
	i := uint32(t.hashOf(f)) & mask
	for t.slots[i].flow != f {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; t.slots[j].flow != nil; j = (j + 1) & mask {
		if home := t.slots[j].hash & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = entry{}
	t.used--
}
