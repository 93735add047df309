package mptcptrace

import (
	"cmp"
	"fmt"
	"slices"
)

// copies counts the subflows that carried the same data.
type copies struct {
	rows   int64            // rows of new data
	starts []uint64         // their starts, if needed
	others map[uint64][]int // by the start of a row that was carried again: the other carriers
	bytes  uint64           // bytes that were carried again
	count  int64            // rows that were carried again
}

// mostCopies is the maximum number of rows whose subflows are remembered.
const mostCopies = 1 << 16

func (c *copies) add(lo uint64, starts bool) {
	c.rows++
	if starts {
		c.starts = append(c.starts, lo)
	}
}

func (c *copies) again(n note) {
	c.bytes += n.hi - n.lo
	c.count++
	if c.others == nil {
		c.others = make(map[uint64][]int)
	}
	subs := c.others[n.lo]
	if slices.Contains(subs, n.sub) || subs == nil && len(c.others) >= mostCopies {
		return
	}
	c.others[n.lo] = append(subs, n.sub)
}

// bySubflows returns the number of rows by the number of subflows that carried
// them: element n counts the rows of n subflows.
func (c *copies) bySubflows() []int64 {
	n := make([]int64, 32)
	n[1] = c.rows - int64(len(c.others))
	for _, subs := range c.others {
		for len(n) <= len(subs)+1 {
			n = append(n, 0)
		}
		n[len(subs)+1]++
	}
	n[1] = max(n[1], 0)
	return n
}

// writeReinjected writes the rows of new data that several subflows carried. A
// row is numbered by its place in the data.
func (w *way) writeReinjected() {
	fmt.Fprintln(w.reinjected, "id,n")
	c := &w.copies
	slices.Sort(c.starts)
	type row struct{ id, n int }
	var rows []row
	for lo, subs := range c.others {
		at, found := slices.BinarySearch(c.starts, lo)
		if !found {
			at-- // the row that contains lo
		}
		rows = append(rows, row{max(at, 0), len(subs) + 1})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.n, b.n)) })
	for _, r := range rows {
		fmt.Fprintf(w.reinjected, "%d,%d\n", r.id, r.n)
	}
}
