package stream

// Run is a sequence of bytes that arrived together.
type Run struct {
	TimeNS  int64
	Bytes   uint64
	Subflow int32
	Missing bool // the bytes were sent but not captured
}

const runSize = 32

// Buffer holds the unread bytes of a stream in order. A zero Buffer needs a
// [Pool] before use.
type Buffer struct {
	pool    *Pool
	data    []byte // unread: at the end of store, or borrowed
	store   []byte
	runs    []Run // runs of the bytes, captured or not
	front   int   // index of the first run with unread bytes
	gaps    int   // number of missing runs
	clear   int   // bytes of data before the first missing run
	charged int
}

// NewBuffer returns an empty buffer.
func NewBuffer(p *Pool) Buffer { return Buffer{pool: p} }

// Bytes returns the unread bytes up to the first missing one. They are valid
// until the next call of another method.
func (b *Buffer) Bytes() []byte { return b.data[:b.clear] }

// Missing returns the number of missing bytes that come next.
func (b *Buffer) Missing() uint64 {
	if b.gaps > 0 && b.clear == 0 {
		return b.runs[b.front].Bytes
	}
	return 0
}

// Cut reports whether a gap follows Bytes.
func (b *Buffer) Cut() bool { return b.gaps > 0 }

// Size returns the memory of the buffer in bytes.
func (b *Buffer) Size() int { return len(b.data) + (len(b.runs)-b.front)*runSize }

// Append adds bytes that arrived together. The caller must not change them
// before Settle.
func (b *Buffer) Append(p []byte, timeNS int64, subflow int32) {
	if len(p) == 0 {
		return
	}
	b.bytes(p)
	b.run(Run{TimeNS: timeNS, Bytes: uint64(len(p)), Subflow: subflow})
}

// AppendRuns adds bytes of several arrivals, all captured. The caller must not
// change them before Settle.
func (b *Buffer) AppendRuns(p []byte, runs []Run) {
	if len(p) == 0 {
		return
	}
	b.bytes(p)
	for _, r := range runs {
		b.run(r)
	}
}

// Miss adds n bytes that were not captured.
func (b *Buffer) Miss(n uint64, timeNS int64, subflow int32) {
	b.run(Run{TimeNS: timeNS, Bytes: n, Subflow: subflow, Missing: true})
}

func (b *Buffer) bytes(p []byte) {
	if len(b.data) == 0 {
		b.data = p
		return
	}
	b.keep(len(p))
	b.store = append(b.store, p...)
	b.data = b.store[len(b.store)-len(b.data)-len(p):]
}

func (b *Buffer) run(r Run) {
	if r.Bytes == 0 {
		return
	}
	if r.Missing {
		b.gaps++
	} else if b.gaps == 0 {
		b.clear += int(r.Bytes)
	}
	if last := len(b.runs) - 1; last >= b.front {
		if l := &b.runs[last]; !r.Missing && !l.Missing && l.TimeNS == r.TimeNS && l.Subflow == r.Subflow {
			l.Bytes += r.Bytes
			return
		}
	}
	b.runs = append(b.runs, r)
}

// keep moves the unread bytes into the store, with room for more bytes.
func (b *Buffer) keep(more int) {
	inStore := len(b.store) > 0 && &b.store[len(b.store)-1] == &b.data[len(b.data)-1]
	if inStore && cap(b.store)-len(b.store) >= more {
		return
	}
	need := len(b.data) + more
	if inStore && cap(b.store) >= 2*need { // much of it was read: make room in front
		n := copy(b.store[:cap(b.store)], b.data)
		b.store = b.store[:n]
	} else {
		if inStore {
			need += need / 2
		}
		old := b.store
		b.store = append(b.pool.store(need), b.data...)
		b.pool.restore(old)
	}
	b.data = b.store
}

// Read reads n bytes, captured or not, and passes their runs to each.
func (b *Buffer) Read(n uint64, each func(Run)) {
	for n > 0 && b.front < len(b.runs) {
		r := &b.runs[b.front]
		part := *r
		part.Bytes = min(n, r.Bytes)
		n -= part.Bytes
		r.Bytes -= part.Bytes
		if r.Bytes == 0 {
			b.front++
		}
		if !part.Missing {
			b.data = b.data[part.Bytes:]
			b.clear -= int(part.Bytes)
		} else if r.Bytes == 0 {
			b.gaps--
			b.clear = b.clearBytes(b.front)
		}
		if each != nil {
			each(part)
		}
	}
	if b.front*2 >= len(b.runs) {
		b.runs, b.front = b.runs[:copy(b.runs, b.runs[b.front:])], 0
	}
}

// clearBytes returns the number of captured bytes from run i to the next
// missing run.
func (b *Buffer) clearBytes(i int) int {
	n := 0
	for ; i < len(b.runs) && !b.runs[i].Missing; i++ {
		n += int(b.runs[i].Bytes)
	}
	return n
}

// Discard reads n bytes, captured or not, and adds their runs to t, unless it
// is nil.
func (b *Buffer) Discard(n uint64, t *Tally) {
	if t == nil {
		b.Read(n, nil)
		return
	}
	b.Read(n, t.Add)
}

// Settle copies the unread borrowed bytes. If the pool has no room for them, it
// empties the buffer and returns false.
func (b *Buffer) Settle() bool {
	if len(b.data) == 0 {
		b.pool.restore(b.store)
		b.store, b.data = nil, nil
		if len(b.runs) == 0 && cap(b.runs) > 16 {
			b.runs = nil
		}
	} else {
		b.keep(0)
	}
	if !b.pool.resize(&b.charged, cap(b.store)+cap(b.runs)*runSize) {
		b.Release()
		return false
	}
	return true
}

// Release drops all bytes and releases the memory.
func (b *Buffer) Release() {
	if b.pool == nil {
		return
	}
	b.pool.Give(b.charged)
	b.pool.restore(b.store)
	*b = Buffer{pool: b.pool}
}

// translate replaces each unread byte by its entry in a table.
func (b *Buffer) translate(table *[256]byte) {
	if len(b.data) > 0 {
		b.keep(0)
	}
	for i, c := range b.data {
		b.data[i] = table[c]
	}
}
