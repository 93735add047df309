package stream

// slab is the size of reusable stores: a TLS record and a segment fit into one.
const slab = 32 << 10

// Pool bounds the total memory of many buffers and reuses slabs. It is not safe
// for concurrent use.
type Pool struct {
	limit, used int
	slabs       [][]byte
}

// NewPool returns a pool of limit bytes.
func NewPool(limit int) *Pool { return &Pool{limit: limit} }

// Used returns the number of bytes in use.
func (p *Pool) Used() int { return p.used }

// Take reserves n bytes. It returns false if the limit does not allow them.
func (p *Pool) Take(n int) bool {
	if p.used+n > p.limit {
		return false
	}
	p.used += n
	return true
}

// Give releases n bytes.
func (p *Pool) Give(n int) { p.used -= n }

// resize changes a reservation of *taken bytes to n bytes. It returns false,
// without a change, if the limit does not allow it.
func (p *Pool) resize(taken *int, n int) bool {
	if n > *taken && !p.Take(n-*taken) {
		return false
	}
	if n < *taken {
		p.Give(*taken - n)
	}
	*taken = n
	return true
}

// store returns an empty slice with room for n bytes.
func (p *Pool) store(n int) []byte {
	if n <= slab/16 || n > slab {
		return make([]byte, 0, n)
	}
	if last := len(p.slabs) - 1; last >= 0 {
		s := p.slabs[last]
		p.slabs = p.slabs[:last]
		return s
	}
	return make([]byte, 0, slab)
}

func (p *Pool) restore(s []byte) {
	if cap(s) == slab && len(p.slabs) < 32 {
		p.slabs = append(p.slabs, s[:0])
	}
}
