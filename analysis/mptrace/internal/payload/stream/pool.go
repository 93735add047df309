package stream

// slab is the size of the stores that are used again and again: a TLS record
// and a segment fit into one.
const slab = 32 << 10

// Pool bounds the memory of many buffers together, and keeps some of it for
// the next who asks. It is not safe for concurrent use.
type Pool struct {
	limit, used int
	slabs       [][]byte
}

// NewPool returns a pool for so many bytes.
func NewPool(limit int) *Pool { return &Pool{limit: limit} }

// Used is how many bytes are taken at the moment.
func (p *Pool) Used() int { return p.used }

// Take asks for n bytes; false when they are not to be had.
func (p *Pool) Take(n int) bool {
	if p.used+n > p.limit {
		return false
	}
	p.used += n
	return true
}

// Give returns n bytes.
func (p *Pool) Give(n int) { p.used -= n }

// resize takes or gives so that one who had taken *taken bytes has taken n;
// false, and nothing changes, when they are not to be had.
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
