// Package record turns a capture of a saturated path into a packet-delivery trace, by the method of deng2014 §5: the
// packets of full size that a saturating flow gets through a path are the opportunities of that path.
package record
