package observe

import "slices"

// Piece is new data that a segment carried: [Lo, Hi) on a subflow.
type Piece struct {
	Lo, Hi uint64
	TimeNS int64
	Sub    int32
}

// Unacked holds the unacknowledged pieces of a direction in ascending order.
// The zero value is empty.
type Unacked struct {
	pieces []Piece
	head   int // index of the first valid piece
}

// mostUnacked is the maximum number of pieces; beyond it, the lowest ones are
// forgotten.
const mostUnacked = 1 << 16

// Add adds a piece.
func (u *Unacked) Add(p Piece) {
	if len(u.pieces)-u.head >= mostUnacked {
		u.head++
	}
	if u.head > 1024 && u.head > len(u.pieces)/2 {
		u.pieces = slices.Delete(u.pieces, 0, u.head)
		u.head = 0
	}
	at := len(u.pieces)
	for at > u.head && u.pieces[at-1].Lo > p.Lo {
		at--
	}
	u.pieces = slices.Insert(u.pieces, at, p)
}

// Ack removes the pieces below a number and returns them. They are valid until
// the next Add.
func (u *Unacked) Ack(below uint64) []Piece {
	from := u.head
	for u.head < len(u.pieces) && u.pieces[u.head].Hi <= below {
		u.head++
	}
	acked := u.pieces[from:u.head]
	if u.head == len(u.pieces) {
		u.pieces, u.head = u.pieces[:0], 0
	}
	return acked
}

// Drop removes the pieces that overlap [lo, hi).
func (u *Unacked) Drop(lo, hi uint64) {
	rest := u.pieces[u.head:]
	first := len(rest)
	for first > 0 && rest[first-1].Hi > lo {
		first--
	}
	last := first
	for last < len(rest) && rest[last].Lo < hi {
		last++
	}
	u.pieces = slices.Delete(u.pieces, u.head+first, u.head+last)
}

// Flight returns the distance from the first byte to the last, or false if
// there are no pieces.
func (u *Unacked) Flight() (uint64, bool) {
	if u.head == len(u.pieces) {
		return 0, false
	}
	return u.pieces[len(u.pieces)-1].Hi - u.pieces[u.head].Lo, true
}
