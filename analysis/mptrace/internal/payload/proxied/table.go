package proxied

import (
	"cmp"
	"crypto/md5" // #nosec G501: what the cipher uses
	"encoding/binary"
	"slices"
)

// Table is the cipher "table" of ShadowSocks, which baerts2015 used (§3.4.2).
// It replaces each byte by another one, in the same way in both directions.
type Table struct{ plain [256]byte }

// rounds is the number of sorting rounds.
const rounds = 1023

// NewTable builds the table of a password: the numbers 0 to 255, sorted stably
// in each round by the remainder of the key (the first 64 bits of the
// password's MD5, little endian) divided by the sum of the number and the
// round.
func NewTable(password string) *Table {
	sum := md5.Sum([]byte(password)) // #nosec G401
	key := binary.LittleEndian.Uint64(sum[:])
	var sealed [256]byte
	for i := range sealed {
		sealed[i] = byte(i)
	}
	for round := uint64(1); round <= rounds; round++ {
		slices.SortStableFunc(sealed[:], func(a, b byte) int {
			return cmp.Compare(key%(uint64(a)+round), key%(uint64(b)+round))
		})
	}
	t := &Table{}
	for i, s := range sealed {
		t.plain[s] = byte(i)
	}
	return t
}

// Bytes returns the table: the plain byte for each byte on the wire.
func (t *Table) Bytes() *[256]byte { return &t.plain }

// Decode returns the plain form of bytes from the wire.
func (t *Table) Decode(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		out[i] = t.plain[c]
	}
	return out
}
