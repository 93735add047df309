// Package phonelog holds the logger that records the events of a phone's
// networks, and the collector that receives its records. It does not depend on
// mpflex, and no other program imports any of it.
package phonelog
