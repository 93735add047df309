// Package phonelog holds the logger that records what happens to a phone's networks,
// and the collector that takes its records. Nothing here knows mpflex, and no other
// program imports any of it.
package phonelog
