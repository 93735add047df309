package ends

import (
	"fmt"
	"os"
)

// apart returns ErrSame if the same file is given for both ends.
func apart(phone, proxy []string) error {
	for _, a := range phone {
		one, err := os.Stat(a)
		if err != nil {
			continue // opening the capture reports the error
		}
		for _, b := range proxy {
			if other, err := os.Stat(b); err == nil && os.SameFile(one, other) {
				return fmt.Errorf("--phone %s, --proxy %s: %w", a, b, ErrSame)
			}
		}
	}
	return nil
}

// doubts lists contradictions in the result that suggest that the captures are
// not those of the two ends, or are swapped.
func (r *Result) doubts(swapped bool) (doubts []string) {
	const (
		fewDelays = 10
		fewUnseen = 10
	)
	var delays, sent, unseen int64
	longest := 0.0
	for i := range r.PathEnds {
		p := &r.PathEnds[i]
		delays, sent, unseen = delays+p.Delays, sent+p.Sent, unseen+p.Unseen
		longest = max(longest, p.OWDMaxMS.Value, -p.OWDMinMS.Value)
	}
	switch {
	case swapped:
		doubts = append(doubts, "packets pass the far end before the near one: --phone and --proxy seem to be swapped")
	case delays >= fewDelays && longest == 0:
		doubts = append(doubts, "every packet has the same time at both ends: --phone and --proxy seem to be copies of one capture")
	case unseen > fewUnseen && unseen > sent/100:
		doubts = append(doubts, fmt.Sprintf("%d packets arrived that are missing in the sender's capture, which has %d: it has lost packets, or is of other paths", unseen, sent))
	}
	return doubts
}
