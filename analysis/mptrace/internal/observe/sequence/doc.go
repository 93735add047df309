// Package sequence keeps the points of time-sequence diagrams: data,
// retransmissions, reinjections, acknowledgements and windows over time.
package sequence
