// Package record turns a capture of a saturated path into a packet-delivery trace, by the method of deng2014 §5: the
// full-size packets of a saturating flow are the opportunities of the path.
package record
