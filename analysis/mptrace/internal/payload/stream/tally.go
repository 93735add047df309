package stream

// Share is the part of the bytes that one subflow carried.
type Share struct {
	Subflow int32
	Bytes   int64
}

// Tally sums up arrival times and subflows of bytes. The zero value is empty.
type Tally struct {
	Bytes           int64
	FirstNS, LastNS int64   // arrival of the first byte in the stream; latest arrival of any byte
	Shares          []Share // in the order of first appearance
}

// Add adds a run.
func (t *Tally) Add(r Run) {
	if t.Bytes == 0 {
		t.FirstNS, t.LastNS = r.TimeNS, r.TimeNS
	}
	t.Bytes += int64(r.Bytes)
	t.LastNS = max(t.LastNS, r.TimeNS)
	for i := range t.Shares {
		if t.Shares[i].Subflow == r.Subflow {
			t.Shares[i].Bytes += int64(r.Bytes)
			return
		}
	}
	t.Shares = append(t.Shares, Share{r.Subflow, int64(r.Bytes)})
}

// Merge adds everything that another tally counted.
func (t *Tally) Merge(o *Tally) {
	for i, share := range o.Shares {
		first := o.LastNS
		if i == 0 {
			first = o.FirstNS
		}
		t.Add(Run{TimeNS: first, Subflow: share.Subflow, Bytes: uint64(share.Bytes)})
	}
	if o.Bytes > 0 {
		t.LastNS = max(t.LastNS, o.LastNS)
	}
}
