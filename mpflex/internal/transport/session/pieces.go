package session

import "slices"

// chunk bounds how many pieces are moved when one is inserted.
const chunk = 256

// pieces holds runs of received bytes behind a gap, by ascending offset. No two start
// at the same offset. They are kept in non-empty chunks of at most 2·chunk pieces, so
// an insertion costs about the same in any order of arrival.
type pieces struct {
	chunks [][]piece
	n      int
}

// at is a position among pieces: before piece i of chunk c. i may be the length of the
// last chunk.
type at struct{ c, i int }

// search returns the position of the first piece that starts at lo or above.
func (l *pieces) search(lo uint64) at {
	c, _ := slices.BinarySearchFunc(l.chunks, lo, func(list []piece, lo uint64) int {
		if list[len(list)-1].lo < lo {
			return -1
		}
		return 1
	})
	if c == len(l.chunks) {
		if c == 0 {
			return at{}
		}
		return at{c - 1, len(l.chunks[c-1])}
	}
	i, _ := slices.BinarySearchFunc(l.chunks[c], lo, func(p piece, lo uint64) int {
		if p.lo < lo {
			return -1
		}
		return 1
	})
	return at{c, i}
}

// get returns the piece at a position, or nil.
func (l *pieces) get(a at) *piece {
	if a.c == len(l.chunks) || a.i == len(l.chunks[a.c]) {
		return nil
	}
	return &l.chunks[a.c][a.i]
}

// before returns the piece before a position, or nil.
func (l *pieces) before(a at) *piece {
	switch {
	case a.i > 0:
		return &l.chunks[a.c][a.i-1]
	case a.c > 0:
		list := l.chunks[a.c-1]
		return &list[len(list)-1]
	}
	return nil
}

// insert inserts a piece at a position.
func (l *pieces) insert(a at, p piece) {
	l.n++
	if len(l.chunks) == 0 {
		l.chunks = [][]piece{{p}}
		return
	}
	list := slices.Insert(l.chunks[a.c], a.i, p)
	l.chunks[a.c] = list
	if len(list) > 2*chunk {
		l.chunks[a.c] = list[:chunk:chunk]
		l.chunks = slices.Insert(l.chunks, a.c+1, slices.Clone(list[chunk:]))
	}
}

// first returns the first piece, or nil.
func (l *pieces) first() *piece { return l.get(at{}) }

// last returns the last piece, or nil.
func (l *pieces) last() *piece { return l.before(at{len(l.chunks), 0}) }

// drop removes the first piece.
func (l *pieces) drop() {
	l.n--
	list := l.chunks[0]
	list[0] = piece{}
	if l.chunks[0] = list[1:]; len(list) == 1 {
		l.chunks = l.chunks[1:]
	}
}
