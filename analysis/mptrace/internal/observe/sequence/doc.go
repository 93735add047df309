// Package sequence keeps the points of time-sequence diagrams: what was sent
// when, what was sent again, and how acknowledgements and window followed.
package sequence
